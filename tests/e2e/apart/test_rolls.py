"""A Deployment with a standby is rolled and drained, and what is held stays held.

Its pods are made and ended by the real controllers, and evicted by the real API server. In each of
them a Reserver runs; what a kubelet and kube-proxy do between them is played here.
"""

from __future__ import annotations

import itertools
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from kubernetes.client import AppsV1Api
from kubernetes.client.exceptions import ApiException

from hack.bed.bed import scheduling
from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SPEC

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

MANIFEST = Path(__file__).parents[3] / "scheduler-config/standby/deployment.yaml"
SCHEDULER = "over-service"
NODE = "without-kubelet"


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
            back = threading.Thread(target=_copy, args=(there, self.request), daemon=True)
            back.start()
            _copy(self.request, there)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


class Pods:
    """The pods of the Deployment, each with a Reserver; a turn does what a kubelet does."""

    def __init__(self, corner: Corner, start: Callable[[str], ReserverProcess]) -> None:
        self._api = corner.api
        self._namespace = corner.name
        self._start = start
        self.service = Service()
        self.running: dict[str, ReserverProcess] = {}

    def turn(self) -> list[Any]:
        """Start, judge and end what is due; return the pods that stay, the leader first."""
        selector = "app.kubernetes.io/component=extender"
        pods = self._api.list_namespaced_pod(self._namespace, label_selector=selector).items
        staying = [each for each in pods if not each.metadata.deletion_timestamp]
        for each in staying:
            if each.metadata.name not in self.running:
                self.running[each.metadata.name] = self._start(each.metadata.name)
        leading = {name: one for name, one in self.running.items() if one.is_ready()}
        self.service.leader = next((one.port for one in leading.values()), None)
        for each in staying:
            self._say(each, is_ready=each.metadata.name in leading)
        # preStop: they end once others stand by.
        for each in pods:
            if each not in staying:
                self.running.pop(each.metadata.name).stop()
                with suppress(ApiException):
                    self._api.delete_namespaced_pod(
                        each.metadata.name, self._namespace, grace_period_seconds=0
                    )
        return sorted(staying, key=lambda each: each.metadata.name not in leading)

    def _say(self, pod: Any, *, is_ready: bool) -> None:
        wanted = str(is_ready)
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
                self._namespace,
                {"status": {"phase": "Running", "conditions": [condition]}},
            )


@pytest.fixture
def rolled(
    control_plane: ControlPlane, reserver_kubeconfig: Path, api: Any, tmp_path: Path
) -> Iterator[tuple[Corner, Pods]]:
    """A corner whose kube-scheduler calls the Service of the Deployment."""
    corner = Corner(control_plane.kubeconfig, SCHEDULER, api)
    corner.open()
    api.create_node({"metadata": {"name": NODE}})

    def start(name: str) -> ReserverProcess:
        log = tmp_path / f"{name}.log"
        process = ReserverProcess(reserver_kubeconfig, log, "--leader-elect", wait_ready=False)
        process.start()
        return process

    pods = Pods(corner, start)
    try:
        with pods.service as service, scheduling(control_plane, service.port, SCHEDULER):
            yield corner, pods
    finally:
        for each in pods.running.values():
            each.stop()
        corner.close()
        api.delete_node(NODE)


def test_a_roll_and_a_drain_end_and_nobody_gets_past_a_hold(rolled: tuple[Corner, Pods]) -> None:
    corner, pods = rolled
    apps: Any = AppsV1Api(corner.api.api_client)
    deployment = yaml.safe_load(MANIFEST.read_text())
    deployment["metadata"]["namespace"] = corner.name
    deployment["spec"]["template"]["spec"] |= {"nodeName": NODE, "serviceAccountName": "default"}
    apps.create_namespaced_deployment(corner.name, deployment)

    def leads(number: int = 2) -> str | None:
        staying = pods.turn()
        return staying[0].metadata.name if len(staying) == number and pods.service.leader else None

    first = wait_for(leads, "one leads and one stands by")
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, node, "owner", cpu="3")
    corner.wait_held(node)
    strangers = (f"stranger-{number}" for number in itertools.count())

    def is_kept() -> bool:
        """Try to get in, at each turn."""
        corner.create_pod(next(strangers), {"cpu": "2"})
        bound = corner.api.list_namespaced_pod(corner.name).items
        return not any(
            each.spec.node_name for each in bound if each.metadata.name.startswith("stranger-")
        )

    template = {"metadata": {"annotations": {"rolled": "once"}}}
    apps.patch_namespaced_deployment("reserver", corner.name, {"spec": {"template": template}})

    def is_rolled() -> bool:
        pods.turn()
        assert is_kept()
        status = apps.read_namespaced_deployment("reserver", corner.name).status
        return (
            status.observed_generation > 1
            and status.updated_replicas == status.replicas == len(pods.running)
            and first not in pods.running
        )

    wait_for(is_rolled, "the roll has ended")
    second = wait_for(leads, "one of the new ones leads")
    corner.create_pod("owner", {"cpu": "3"})
    assert corner.wait_bound("owner") == node

    corner.api.create_namespaced_pod_eviction(second, corner.name, {"metadata": {"name": second}})
    third = wait_for(leads, "the other leads, and there are two again")
    assert third != second
    assert is_kept()
