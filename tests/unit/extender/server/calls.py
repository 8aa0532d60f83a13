"""An extender that serves HTTP, and calls of kube-scheduler."""

import json

import aiohttp
from prometheus_client.core import CounterMetricFamily

from reserver.extender.metrics import Metrics
from reserver.scheduling.state import State
from tests.builders import reservation
from tests.unit.extender.conftest import Served

Client = aiohttp.ClientSession
SEAT = reservation("r", cpu="4")


class Measured:
    """The state that metrics read."""

    def __init__(self, served: Served) -> None:
        self._served = served

    @property
    def state(self) -> State:
        return self._served.state

    @property
    def expiring(self) -> int:
        return 0

    @property
    def is_ready(self) -> bool:
        return not self._served.readiness.said


def metrics(served: Served) -> Metrics:
    families = [CounterMetricFamily("reserver_lists", "Lists.", value=7)]
    return Metrics(Measured(served), lambda: families)


def filter_call(pod_name: str, *names: str, cpu: str = "1") -> bytes:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": pod_name, "namespace": "shop", "uid": f"uid-{pod_name}"}
    sent = {"metadata": metadata, "spec": {"containers": containers}, "status": {}}
    return json.dumps({"Pod": sent, "Nodes": None, "NodeNames": names}).encode()


def bind_call(pod_name: str, node: str = "worker-1") -> bytes:
    uid = f"uid-{pod_name}"
    call = {"PodName": pod_name, "PodNamespace": "shop", "PodUID": uid, "Node": node}
    return json.dumps(call).encode()


def preempt_call(pod_name: str, *, cpu: str = "1", **victims: list[str]) -> bytes:
    call = json.loads(filter_call(pod_name, cpu=cpu))
    by_node = {
        f"worker-{node[1:]}": {"Pods": [{"UID": f"uid-{v}"} for v in pods], "NumPDBViolations": 2}
        for node, pods in victims.items()
    }
    return json.dumps({"Pod": call["Pod"], "NodeNameToMetaVictims": by_node}).encode()


async def post(client: Client, path: str, body: bytes) -> tuple[int, bytes]:
    async with client.post(path, data=body) as response:
        assert response.headers["Content-Type"].startswith("application/json")
        assert "Content-Length" in response.headers
        return response.status, await response.read()


async def get(client: Client, path: str) -> tuple[int, str]:
    async with client.get(path) as response:
        return response.status, await response.text()
