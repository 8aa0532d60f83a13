"""A store of ConfigMaps, the state behind it, and the writer of its companions."""

import json
from collections.abc import Mapping
from typing import Any

from reserver.base.pacer import outcome
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.configmap.companion_codec import SEEN
from reserver.stores.configmap.status import CompanionStatuses
from reserver.stores.status import RoomReport
from tests.builders import NOW, node, pod
from tests.listening import Calling
from tests.unit.k8s.fakes import Request, ScriptedClient, refused

W1 = node("worker-1", cpu="64")
TAKER = pod("taker", node="worker-1", cpu="64")
MISSING = refused(404)
COLLECTION = "/api/v1/namespaces/shop/configmaps"
PATH = f"{COLLECTION}/store-status"


def spec(**changes: object) -> str:
    fields = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "2"}, "node": "worker-1"}
    return json.dumps(fields | {"ttl": 0} | changes)


def answer(
    version: int, data: Mapping[str, str] | None = None, uid: str = "uid-1", seen: str = ""
) -> Any:
    """Return a companion in the form of the API server."""
    metadata: dict[str, Any] = {"resourceVersion": str(version), "ownerReferences": [{"uid": uid}]}
    metadata["annotations"] = {SEEN: seen}
    return {"metadata": metadata, "data": data or {}}


class World:
    """A store, the state behind it, and a writer in front of an API server with a script."""

    def __init__(self, *script: Any, things: tuple[Node | Pod, ...] = (W1,)) -> None:
        self.now = NOW
        self.warned: list[tuple[str, str]] = []
        self.client = ScriptedClient(*script)
        self.restart()
        for thing in things:
            if isinstance(thing, Node):
                self.state.node_seen(thing)
            else:
                self.state.pod_seen(thing)

    def restart(self) -> None:
        self.state = State(Calling(self._changed))
        self.store = ConfigMapCache(
            self.state.ledger,
            lambda: self.now,
            lambda *_: None,
            self._changed,
        )
        room = RoomReport(self._changed)
        self.writer = CompanionStatuses(self.client, self.store, self._warn, room)

    def _changed(self, ref: Ref) -> None:
        self.writer.queue.add(ref.whole)

    def _warn(self, _: Metadata, reason: str, message: str) -> None:
        self.warned.append((reason, message))

    def put(self, uid: str = "uid-1", version: str = "", **data: str) -> None:
        self._put(Metadata("store", "shop", uid, version), data, listed=False)

    def list_(self, version: str, **data: str) -> None:
        self._put(Metadata("store", "shop", "uid-1", version), data, listed=True)

    def _put(self, metadata: Metadata, data: Mapping[str, str], *, listed: bool) -> None:
        renamed = {key.replace("_", "-"): text for key, text in data.items()}
        outcome(self.store.put(ConfigMapObject(metadata=metadata, data=renamed), listed=listed))

    async def write(self, *script: Any, later: float = 0.0) -> list[Request]:
        """Run the writer with these answers; return its requests."""
        self.client.script += script
        self.client.requests.clear()
        self.now += later
        await self.writer.write(self.state)
        assert not self.client.script
        return list(self.client.requests)


def said(request: Request, key: str) -> Any:
    return json.loads(request.body["data"][key])


async def written(**data: str) -> tuple[World, dict[str, str]]:
    """Return a world whose companion exists, and the data of the companion."""
    world = World()
    world.put(**data)
    _, create = await world.write(MISSING, answer(1))
    return world, create.body["data"]
