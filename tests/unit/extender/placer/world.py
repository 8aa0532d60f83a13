"""A state, a store and the placer of their reservations."""

import json
from dataclasses import replace
from typing import Any, Never

from reserver.base.pacer import Pacer, outcome
from reserver.cluster.node import Node
from reserver.extender.placer import UNWRITTEN, Placer
from reserver.extender.placing_pass import Notice
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.closures import Closure
from reserver.scheduling.state import State
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.edits import Edit
from reserver.stores.object.cache import ObjectCache
from tests.builders import NOW, node, ref

BIG = node("big", cpu="8")
SMALL = node("small", cpu="4")
SPEC: dict[str, Any] = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "3"}, "ttl": 0}


class World:
    """A state, a store, and the placer of their reservations."""

    def __init__(self, *nodes: Node) -> None:
        self.now = NOW
        self.told: list[Notice] = []
        self.seated: list[str] = []
        self.data: dict[str, str] = {}
        self.revision = 1
        queue = WorkQueue[Ref | str]("placer", replace(UNWRITTEN, chance=lambda: 1.0), time=self)
        self.placer = Placer(lambda: self.now, self.seated.append, self.told.append, queue=queue)
        self.state = State(self.placer)
        clock = lambda: self.now  # noqa: E731
        self.store = ConfigMapCache(
            self.state.ledger, clock, lambda *_: None, self.placer.on_reservation_changed
        )
        self.objects = ObjectCache(
            self.state.ledger,
            clock,
            lambda *_: None,
            self.placer.on_reservation_changed,
            home="home",
        )
        for each in nodes:
            self.state.node_seen(each)
        self.state.is_complete = True

    def time(self) -> float:
        return self.now

    def call_later(self, *_: object) -> Never:
        raise AssertionError("nothing waits here: passes are made by the tests")

    def write(self, **entries: Any) -> None:
        """Show a ConfigMap with these entries added to the former ones; None removes an entry."""
        for key, value in entries.items():
            if value is None:
                del self.data[key]
            else:
                self.data[key] = value if isinstance(value, str) else json.dumps(value)
        self.revision += 1
        metadata = Metadata("store", "shop", "uid", str(self.revision))
        outcome(self.store.put(ConfigMapObject(metadata=metadata, data=dict(self.data))))

    async def look(self) -> None:
        await self.placer.look(self.state, Pacer())

    def due(self, key: str = "r") -> Edit | None:
        return self.store.due_edit(ref(key), self.now)

    def make(self, key: str = "r") -> None:
        """Carry out the edit that is due, and show the result."""
        edit = self.due(key)
        assert edit is not None
        assert edit.value is not None
        self.write(**{key: edit.value})

    def placed(self, key: str = "r") -> dict[str, int]:
        return dict(self.reservation(key).placed)

    def reservation(self, key: str = "r") -> Reservation:
        found = self.state.ledger.get(ref(key))
        assert found is not None
        return found

    def phase(self, key: str = "r") -> Phase | None:
        return self.state.ledger.phase(ref(key))

    @property
    def reasons(self) -> list[str]:
        return [notice.reason for notice in self.told]


async def looked_at(*nodes: Node, **entries: Any) -> World:
    """Return a world whose entries the placer has judged once."""
    world = World(*nodes)
    world.write(**entries)
    await world.look()
    return world


VACATED = Closure("were in maintenance", is_vacated=True)


async def closed(world: World, **closures: Closure) -> None:
    """Close nodes, and have the placer judge the reservations on them, as a feature does."""
    for name in world.state.closures.set({each: frozenset({n}) for n, each in closures.items()}):
        world.state.listener.on_node_changed(name)
    world.placer.unsuited(ref("r"), anywhere=False)
    await world.look()
