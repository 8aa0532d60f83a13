"""A store of Reservations, and the writer of their statuses."""

import json
from typing import Any

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import Metadata, encode
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.status import ObjectStatuses
from reserver.stores.status import RoomReport
from tests.builders import NOW, node
from tests.listening import Calling
from tests.unit.k8s.clocks import ManualTime
from tests.unit.k8s.fakes import Request, ScriptedClient

W1 = node("worker-1", cpu="64")


class ObjectClient(ScriptedClient):
    """An API server that accepts each write, unless the script has an error for it."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, ReservationObject] = {}

    async def _next(self, request: Request) -> Any:
        self.requests.append(request)
        if self.script:
            raise self.script.pop(0)
        path = request.path.removesuffix("/status")
        before = self.objects[path]
        revision = before.metadata.revision + 1
        return written(before, revision, request.body["status"])


def written(before: ReservationObject, revision: int, status: Any) -> bytes:
    metadata = json.loads(encode(before.metadata))
    body = {"metadata": metadata | {"resourceVersion": str(revision)}}
    return encode(body | {"spec": before.spec, "status": status})


class World:
    """A store of objects, the state behind it, and a writer in front of an API server."""

    def __init__(self, *things: Node | Pod) -> None:
        self.now = NOW
        self.warned: list[tuple[str, str]] = []
        self.client = ObjectClient()
        self.state = State(Calling(self._changed))
        self.state.is_complete = True
        self.store = ObjectCache(
            self.state.ledger,
            lambda: self.now,
            lambda *_: None,
            self._changed,
            home="home",
        )
        room = RoomReport(self._changed)
        self.writer = ObjectStatuses(self.client, self.store, self._warn, room)
        self.time = self.writer.queue._time = ManualTime()
        for thing in things or (W1,):
            if isinstance(thing, Node):
                self.state.node_seen(thing)
            else:
                self.state.pod_seen(thing)

    def _changed(self, ref: Ref) -> None:
        self.writer.queue.add(ref.whole)

    def _warn(self, _: Metadata, reason: str, message: str) -> None:
        self.warned.append((reason, message))

    def put(self, *items: ReservationObject) -> None:
        for item in items:
            self.client.objects[item.path] = item
            self.store.put(item)

    async def write(self, *errors: Any, later: float = 0.0) -> list[Any]:
        """Run the writer; return its writes."""
        self.client.script += errors
        self.client.requests.clear()
        self.now += later
        self.time.now += later
        await self.writer.write(self.state)
        assert not self.client.script
        return [json.loads(encode(r.body["status"])) for r in self.client.requests]


def condition(status: Any, kind: str = "Backed") -> tuple[str, str, str]:
    (found,) = (c for c in status["conditions"] if c["type"] == kind)
    return found["status"], found["reason"], found["message"]
