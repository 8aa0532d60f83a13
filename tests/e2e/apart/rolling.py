"""The Deployment with a standby: its pods, a Service that leads to the leader, its scheduler.

A turn does the work of kubelet and kube-proxy.
"""

from __future__ import annotations

import itertools
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from kubernetes.client import AppsV1Api
from kubernetes.client.exceptions import ApiException

from hack.controlplane.build import bin_dir
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.programs import done
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "scheduler-config/standby"
HOME = "reserver-system"
SCHEDULER = "over-service"
BOOTSTRAP = "reserver-bootstrap"
ROLE = {"reserver.io/e2e-role": "reserver"}
"""Labels of the nodes for Reserver's own pods."""

TYPO = "registry.example/reserver:typo"


class Service(socketserver.ThreadingTCPServer):
    """Leads each new connection to where the leader listens."""

    allow_reuse_address = True
    daemon_threads = True
    leader: int | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Forward)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Forward(socketserver.BaseRequestHandler):
    """One connection."""

    server: Service

    def handle(self) -> None:
        if not self.server.leader:
            return
        with (
            suppress(OSError),
            closing(socket.create_connection(("127.0.0.1", self.server.leader))) as there,
        ):
            back = threading.Thread(target=pipe, args=(there, self.request), daemon=True)
            back.start()
            pipe(self.request, there)
            back.join()


def pipe(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one side is gone."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


class Pods:
    """The pods of the Deployment, each with a Reserver; a turn does the work of a kubelet."""

    def __init__(self, api: Any, start: Callable[[str], ReserverProcess]) -> None:
        self._api = api
        self._start = start
        self.service = Service()
        self.running: dict[str, ReserverProcess] = {}

    def turn(self) -> list[Any]:
        """Start, probe and end pods; return the pods that stay, the leader first."""
        selector = "app.kubernetes.io/component=extender"
        pods = self._api.list_namespaced_pod(HOME, label_selector=selector).items
        staying = [each for each in pods if not each.metadata.deletion_timestamp]
        for each in staying:
            startable = each.spec.node_name and each.spec.containers[0].image != TYPO
            if startable and each.metadata.name not in self.running:
                self.running[each.metadata.name] = self._start(each.metadata.name)
        serving = [each for each in pods if "reserver.io/serving" in each.metadata.labels]
        assert len(serving) <= 2  # The former leader's label goes when the next one has its own.
        for each in staying:
            self._judge(each)
        ready = {each.metadata.name for each in serving if self._is_able(each.metadata.name)}
        self.service.leader = next((self.running[name].port for name in sorted(ready)), None)
        for each in pods:
            if each not in staying:
                self.end(each.metadata.name)
        return sorted(staying, key=lambda each: each.metadata.name not in ready)

    def end(self, name: str) -> None:
        """End a pod, after its preStop."""
        if name in self.running:
            self.running.pop(name).stop()
        with suppress(ApiException):
            self._api.delete_namespaced_pod(name, HOME, grace_period_seconds=0)

    def _is_able(self, name: str) -> bool:
        try:
            return name in self.running and self.running[name].get("/readyz/able")[0] == 200
        except OSError:
            return False

    def _judge(self, pod: Any) -> None:
        if not pod.spec.node_name:
            return
        wanted = str(self._is_able(pod.metadata.name))
        if [one.status for one in pod.status.conditions or () if one.type == "Ready"] == [wanted]:
            return
        # It became ready long enough ago to be available at once.
        condition = {
            "type": "Ready",
            "status": wanted,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        with suppress(ApiException):
            self._api.patch_namespaced_pod_status(
                pod.metadata.name,
                HOME,
                {"status": {"phase": "Running", "conditions": [condition]}},
            )


class Rolled:
    """A cluster whose kube-scheduler calls the Service of the Deployment."""

    def __init__(self, plane: ControlPlane, corner: Corner, pods: Pods) -> None:
        self.plane, self.corner, self.pods = plane, corner, pods
        self.apps: Any = AppsV1Api(corner.api.api_client)
        self._strangers = (f"stranger-{number}" for number in itertools.count())

    def deploy(self) -> str:
        """Create the shipped objects; return the leader."""
        deployment = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text())
        tolerations = [{"operator": "Exists"}]  # No kubelet says that their nodes are ready.
        pod = {"nodeSelector": ROLE, "tolerations": tolerations}
        deployment["spec"]["template"]["spec"] |= pod
        self.apps.create_namespaced_deployment(HOME, deployment)
        self.kubectl(f"apply -f {MANIFESTS / 'disruption-budget.yaml'}")
        return wait_for(self.leads, "one leads and one stands by")

    def create(self) -> None:
        """Create the shipped objects, the Deployment of their scheduler among them."""
        code, said = self.run(f"kubectl apply -f {MANIFESTS / 'rbac-bootstrap.yaml'}")
        assert code == 0, said
        for name in ("deployment", "bootstrap"):
            deployment = yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())
            pod = deployment["spec"]["template"]["spec"]
            pod |= {"nodeSelector": ROLE, "tolerations": [{"operator": "Exists"}]}
            if name == "bootstrap":  # By the cluster's own, which is called otherwise here.
                pod["schedulerName"] = SCHEDULER
            self.apps.create_namespaced_deployment(HOME, deployment)

    def bootstrap_pod(self) -> Any:
        selector = f"app.kubernetes.io/name={BOOTSTRAP}"
        found = self.corner.api.list_namespaced_pod(HOME, label_selector=selector).items
        return found[0] if found else None

    def leads(self, number: int = 2) -> str | None:
        staying = self.pods.turn()
        is_complete = len(staying) == number == len(self.pods.running)
        return staying[0].metadata.name if is_complete and self.pods.service.leader else None

    def has_rolled_out(self) -> bool:
        """Return whether `kubectl rollout status` reports success."""
        self.pods.turn()
        return self.run("kubectl -n reserver-system rollout status deployment/reserver -w=false")[
            1
        ].startswith('deployment "reserver" successfully rolled out')

    def run(self, line: str) -> tuple[int, str]:
        path = f"{bin_dir()}:/usr/bin:/bin"
        home = str(self.plane.folder)
        env = {"PATH": path, "KUBECONFIG": str(self.plane.kubeconfig), "HOME": home}
        told = done("bash", "-c", line, timeout_s=60, env=env)
        return told.returncode, str(told.stdout) + str(told.stderr)

    def kubectl(self, line: str) -> str:
        code, said = self.run(f"kubectl -n {HOME} {line}")
        assert code == 0, said
        return said

    def is_kept(self) -> bool:
        """Create a stranger; return whether none was bound so far."""
        self.corner.create_pod(next(self._strangers), {"cpu": "2"})
        bound = self.corner.api.list_namespaced_pod(self.corner.name).items
        return not any(
            each.spec.node_name for each in bound if each.metadata.name.startswith("stranger-")
        )

    def hold(self) -> str:
        node = self.corner.nodes[0]
        self.corner.reserve(SPEC, node, "owner", cpu="3")
        self.corner.wait_held(node)
        return node

    def evict(self, name: str) -> None:
        self.corner.api.create_namespaced_pod_eviction(name, HOME, {"metadata": {"name": name}})

    def lose(self) -> None:
        """Lose both nodes: no process gives its lease up, and no Reserver answers."""
        for name in [*self.pods.running]:
            self.pods.running.pop(name).kill()
            self.corner.api.delete_namespaced_pod(name, HOME, grace_period_seconds=0)
        self.pods.service.leader = None

    def remove(self) -> None:
        for name in ("reserver", BOOTSTRAP):
            with suppress(ApiException):
                self.apps.delete_namespaced_deployment(name, HOME, propagation_policy="Background")
        selector = f"app.kubernetes.io/name in (reserver,{BOOTSTRAP})"
        wait_for(lambda: not self.apps.list_namespaced_replica_set(HOME).items, "it is deleted")
        for each in self.corner.api.list_namespaced_pod(HOME, label_selector=selector).items:
            self.pods.end(each.metadata.name)
        for name in ("disruption-budget", "rbac-bootstrap"):
            self.run(f"kubectl delete --ignore-not-found -f {MANIFESTS / name}.yaml")


@contextmanager
def bootstrap(plane: ControlPlane) -> Iterator[None]:
    config = plane.folder / f"{BOOTSTRAP}.yaml"
    shipped = MANIFESTS / "bootstrap-scheduler.yaml"
    config.write_text(render_scheduler_config(shipped, kubeconfig=plane.kubeconfig))
    plane.start_scheduler(config, BOOTSTRAP)
    try:
        yield
    finally:
        plane.stop_scheduler(BOOTSTRAP)
