"""A state, an API server that keeps CapacityBuffers, and what writes them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from reserver.autoscaling.controller import AFTER_S, Buffers
from reserver.base.pacer import Pacer
from reserver.cluster.pod import Pod
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.objects.objects import CONFIG_MAP, Metadata
from reserver.reservations.reservation import Reservation
from tests.builders import NOW, node, parts, state_of
from tests.listening import Recorded
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.fakes import refused

FREE = dataclasses.replace(node("a", cpu="4"), is_kept=False)


class Api(ApiClient):
    """An API server that keeps the applied objects.

    Attributes:
        objects: the stored objects, by path.
        writes: the verbs and paths of the writes.
        reads: the paths that were read.
        refusal: the error that answers each write; None carries the write out.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.refusal: Exception | None = None

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        assert content_type == "application/apply-patch+yaml"
        self._answer(f"apply {path}")
        self.objects[path.partition("?")[0]] = json.loads(json.dumps(body))
        return json.dumps({"metadata": {"name": "made", "uid": "u2"}}).encode()

    async def get(self, path: str, params: object = None) -> bytes:
        assert params is None
        self.reads.append(path)
        found = self.objects.get(path)
        if found is None:
            raise refused(404, "NotFound")
        return json.dumps(found).encode()

    async def delete(self, path: str, options: object) -> bytes:
        assert options
        self._answer(f"delete {path}")
        if self.objects.pop(path, None) is None:
            raise refused(404, "NotFound")
        return b"{}"

    def _answer(self, asked: str) -> None:
        self.writes.append(asked)
        if self.refusal is not None:
            raise self.refusal


class Desk:
    """A state, an API server, and the writer of buffers."""

    def __init__(self, *there: Reservation, is_new: bool = False) -> None:
        self.time, self.api = ManualTime(), Api()
        self.heard = Recorded()
        self.state = state_of(*there)
        self.buffers = Buffers(
            self.api,
            lambda: NOW,
            lambda _: (Metadata(name="store", uid="u1"), CONFIG_MAP),
            self.time,
            listener=self.heard,
        )
        if not is_new:
            for each in there:
                self.buffers.on_reservation_changed(each.ref)

    def put(self, made: Reservation) -> None:
        self.state.ledger.put(made)
        self.buffers.on_reservation_changed(made.ref)

    def drop(self, made: Reservation) -> None:
        self.state.ledger.drop(made.ref)
        self.buffers.on_reservation_changed(made.ref)

    def place(self, made: Reservation, on: str) -> None:
        self.state.ledger.place(made.ref, parts({on: made.slots}))
        self.buffers.on_reservation_changed(made.ref)

    def refuse(self, made: Pod, *names: str, note: str = "") -> None:
        """Show a pod that Filter refused because of holds, to the API server and the watch."""
        where = f"/api/v1/namespaces/{made.name.namespace}/pods/{made.name.name}"
        metadata = {"name": made.name.name, "uid": made.uid, "annotations": {"note": note}}
        self.api.objects[where] = {"metadata": metadata, "spec": {"nodeSelector": {"pool": "p"}}}
        self.state.pod_seen(dataclasses.replace(made, is_refused=True))
        self.state.judged(made, names, waits=True)
        self.buffers.on_pod_refused(made.uid)

    def bind(self, made: Pod, on: str) -> None:
        self.state.judged(made, [on], waits=False)
        self.state.assume(made, on, ())
        self.buffers.on_pod_assumed(made, on)

    async def work(self, seconds: float = AFTER_S) -> list[str]:
        """Advance the clock; return the buffers by reservation."""
        self.time.now += seconds
        await self.buffers.look(self.state, Pacer())
        await self.turn()
        while self.buffers.writer.backlog.depth:
            await self.turn()
        return sorted(
            next(iter(each["metadata"]["annotations"].values())).rsplit("/", 1)[1]
            for path, each in self.api.objects.items()
            if "capacitybuffers" in path
        )

    async def changed(self) -> list[str]:
        """Return the buffers after a change of a node."""
        self.buffers.on_node_changed("any")
        return await self.work()

    async def turn(self) -> None:
        """Give the writer one turn."""
        await self.buffers.writer.turn(Pacer())
        await self.write()

    async def write(self) -> None:
        """Run the writer until no buffer has its turn."""
        queue = self.buffers.writer.queue
        await worked_off(queue.run(self.buffers.writer._write, 4), queue)

    def template(self) -> Any:
        return next(each for path, each in self.api.objects.items() if "podtemplates" in path)
