"""`reserver rebalance run` by the metrics of a real metrics-server, behind a real API server.

It asks a kubelet that we play; all from there on is as in a cluster: it averages two readings, and
the API server leads to it. Building it takes minutes, so this is a step of `make release-check`.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from kubernetes import client, config
from kubernetes.client import ApiregistrationV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.process import HeldPort, Process, stop
from hack.go_tool import METRICS_SERVER
from hack.reserver_process import wait_for
from tests.load.loads import CORES, PODS, fill, relieve

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
RBAC = "rbac.authorization.k8s.io"
_PATIENCE_S = 120
"""metrics-server reads every ten seconds at most, and needs two readings of all."""


class Kubelet(BaseHTTPRequestHandler):
    """The metrics of all kubelets: at /NODE the usage of that node since the start."""

    began = time.time()

    def do_GET(self) -> None:
        node = self.path.removeprefix("/")
        if node not in CORES:
            self.send_error(404)  # Its node has yet to say where its metrics are.
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(resource_metrics(node, self.began).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def resource_metrics(node: str, began: float) -> str:
    """Return a kubelet's answer to /metrics/resource."""
    now = time.time()
    ran, stamp = now - began + 3600, int(now * 1000)
    lines = [
        f"node_cpu_usage_seconds_total {CORES[node] * ran} {stamp}",
        f"node_memory_working_set_bytes 4294967296 {stamp}",
    ]
    for pod, cores in PODS.items() if node == "worker-1" else ():
        where = f'{{container="main",namespace="default",pod="{pod}"}}'
        lines += [
            f"container_cpu_usage_seconds_total{where} {cores * ran} {stamp}",
            f"container_memory_working_set_bytes{where} 1048576 {stamp}",
            f"container_start_time_seconds{where} {began - 3600} {stamp}",
        ]
    return "\n".join(lines) + "\n"


@contextmanager
def kubelet() -> Iterator[int]:
    """Play the kubelet of all nodes; yield its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with ThreadingHTTPServer(("127.0.0.1", 0), Kubelet) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@contextmanager
def metrics_server(plane: ControlPlane, folder: Path, kubelet_port: int) -> Iterator[None]:
    """Run metrics-server, to which the API server leads."""
    held = HeldPort()
    command: list[str | Path] = [
        METRICS_SERVER.build(),
        f"--kubeconfig={plane.kubeconfig}",
        f"--authentication-kubeconfig={plane.kubeconfig}",
        f"--authorization-kubeconfig={plane.kubeconfig}",
        "--authentication-skip-lookup",
        "--bind-address=127.0.0.1",
        f"--secure-port={held.number}",
        f"--cert-dir={folder}",
        "--kubelet-insecure-tls",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-port={kubelet_port}",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
    ]
    process = Process(command, folder / "metrics-server.log")
    try:
        _register(plane, held.number)
        yield
    finally:
        stop([process])


def _register(plane: ControlPlane, port: int) -> None:
    """Have the API server ask metrics-server for metrics.k8s.io.

    The API server has no client certificate, so metrics-server answers any client.
    """
    connection = config.new_client_from_config(str(plane.kubeconfig))
    rules = [
        {"apiGroups": [GROUP], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},  # The API server asks what is served there.
    ]
    role = {"metadata": {"name": "metrics"}, "rules": rules}
    everybody = {"apiGroup": RBAC, "kind": "Group", "name": "system:unauthenticated"}
    binding = {
        "metadata": {"name": "metrics"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "metrics"},
        "subjects": [everybody],
    }
    client.RbacAuthorizationV1Api(connection).create_cluster_role(role)
    client.RbacAuthorizationV1Api(connection).create_cluster_role_binding(binding)
    ports = [{"port": port}]
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": ports}
    service = {"metadata": {"name": "metrics-server"}, "spec": spec}
    client.CoreV1Api(connection).create_namespaced_service("kube-system", service)
    asked = {
        "group": GROUP,
        "version": VERSION,
        "service": {"namespace": "kube-system", "name": "metrics-server", "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    body = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{VERSION}.{GROUP}"},
        "spec": asked,
    }
    ApiregistrationV1Api(connection).create_api_service(body)


def _has_read(objects: Any) -> bool:
    """Return whether metrics-server knows what all nodes and pods use."""
    with suppress(ApiException):
        nodes = objects.list_cluster_custom_object(GROUP, VERSION, "nodes")["items"]
        pods = objects.list_cluster_custom_object(GROUP, VERSION, "pods")["items"]
        return len(nodes) == len(CORES) and len(pods) == len(PODS)
    return False


@pytest.mark.timeout(600)
def test_pods_leave_the_node_that_metrics_server_says_is_hot(tmp_path: Path) -> None:
    with ControlPlane() as plane, kubelet() as port, metrics_server(plane, tmp_path, port):
        api = fill(plane)
        for node in CORES:
            where = {"metrics.k8s.io/resource-metrics-path": f"/{node}"}
            api.patch_node(node, {"metadata": {"annotations": where}})
        objects = CustomObjectsApi(api.api_client)
        wait_for(lambda: _has_read(objects), "metrics-server knows all", _PATIENCE_S)
        relieve(plane, api, tmp_path / "policy.yaml", {"source": "KubernetesMetrics"})
