"""All that watches and decides, put together as `serve` does, on raw objects."""

import asyncio
import json
from typing import Any

import msgspec

from reserver.base.clock import SteadyClock
from reserver.base.pacer import Pacer, outcome
from reserver.errors import ApiError
from reserver.extender.handlers import Extender
from reserver.k8s.client import ApiClient
from reserver.k8s.work_queue import WorkQueue
from reserver.process.assembly import Assembly
from reserver.scheduling.state import State
from reserver.settings.serve import Settings
from tests.builders import NOW, Ready
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.fakes import always

NODES = [f"worker-{number}" for number in range(4)]
PODS, NODE_PATH = "/api/v1/pods", "/api/v1/nodes"
STORES = "/api/v1/namespaces/reserver-system/configmaps"
OBJECTS = "/apis/reserver.io/v1alpha1/reservations"
QUOTAS = "/apis/reserver.io/v1alpha1/reservationquotas"


class Willing(ApiClient):
    """An API server that carries out each request, unless a test sets an error."""

    def __init__(self) -> None:
        self.revision = 1000
        self.failure: Exception | None = None

    async def _send(self, method: str, path: str, **_: object) -> bytes:
        if method == "GET":
            raise ApiError(404, "NotFound", f"{path} not found")
        if self.failure is not None:
            raise self.failure
        self.revision += 1
        return json.dumps({"metadata": {"resourceVersion": str(self.revision)}}).encode()


class Whole:
    """All that watches and decides, put together as `serve` does, on raw objects."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.now = NOW
        self.client = Willing()
        clock = SteadyClock(lambda: self.now, lambda: self.now)
        settings = Settings(crd=True, default_quota="none")
        self.assembly = Assembly(settings, self.client, clock, tasks)
        self.state: State = self.assembly.state
        self.time = ManualTime()
        assembly = self.assembly
        queues: tuple[WorkQueue[Any], ...] = (
            assembly.cleaner.queue,
            assembly.placer.queue,
            assembly.quota_writer.unwritten,
            assembly.archivist.queue,
            *(store.statuses.queue for store in assembly.stores),
        )
        for queue in queues:
            queue._time = self.time
        self.extender = Extender(
            self.state,
            self.assembly.pod_writes,
            self.assembly.requeue,
            clock,
            Ready(),
            tasks,
            on_event=self.assembly.recorder.record,
        )
        self.views = {reflector.path: reflector.view for reflector in self.assembly.reflectors}
        outcome(self.state.ledger.open())
        self.state.is_complete = True
        for name in NODES:
            allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
            self.show(NODE_PATH, name, "", status={"allocatable": allocatable})

    def show(self, path: str, name: str, namespace: str, **fields: Any) -> bytes:
        """Show an object by a watch; return the object."""
        self.client.revision += 1
        metadata = fields.pop("metadata", {}) | {
            "name": name,
            "uid": fields.pop("uid", f"uid-{namespace}-{name}"),
            "resourceVersion": str(self.client.revision),
        }
        if namespace:
            metadata["namespace"] = namespace
        raw = json.dumps({"metadata": metadata, **fields}).encode()
        outcome(self.views[path].changed(msgspec.Raw(raw)))
        return raw

    def end(self, path: str, raw: bytes) -> None:
        outcome(self.views[path].deleted(msgspec.Raw(raw)))

    async def work(self) -> None:
        """Run all writers until nothing is left to do."""
        self.time.now += 60.0
        assembly = self.assembly
        await assembly.quota_writer.settle(self.state.ledger, Pacer())
        quota_writer = assembly.quota_writer
        await worked_off(quota_writer.run(assembly.quotas), quota_writer.unwritten)
        await assembly.placer.look(self.state, Pacer())
        await worked_off(assembly.cleaner.run(assembly.stores, always), assembly.cleaner.queue)
        for store in assembly.stores:
            await store.statuses.write(self.state)
        await asyncio.sleep(0.001)
        await worked_off(assembly.recorder.run(), assembly.recorder.queue)
        assembly.waker.queue.take_all()


def spec(number: int, **more: object) -> dict[str, object]:
    return {
        "owners": [
            {"pod": {"name": f"owner-{number}"}},
            {"selector": {"matchLabels": {f"app-{number}": f"a{number}"}}},
        ],
        "resources": {"cpu": "1"},
        "expiresAt": f"2031-01-01T00:{number % 60:02}:{number // 60 % 60:02}Z",
        **more,
    }
