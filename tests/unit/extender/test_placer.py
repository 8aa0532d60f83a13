"""Reservations without a node find one, wait for one, and find another one."""

import asyncio
import json
from collections.abc import Callable, Generator
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Never

import pytest

from reserver.base.pacer import Pacer, outcome
from reserver.cluster.labels import equals
from reserver.cluster.node import HOSTNAME, Node
from reserver.errors import ApiError
from reserver.extender.placer import UNWRITTEN, Placer
from reserver.extender.placing_pass import MOST_FAILED, PART_S, Notice
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.placement import ANYWHERE
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.closures import Closure
from reserver.scheduling.placement import Placed, placing
from reserver.scheduling.state import State
from reserver.scheduling.suitability import moving_off
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.edits import Edit
from reserver.stores.object.cache import ObjectCache
from tests.builders import NOW, demanding, held, node, parts, pod, ref, reservation
from tests.unit.k8s.fakes import refused
from tests.unit.stores.test_object_cache import made

BIG = node("big", cpu="8")
SMALL = node("small", cpu="4")
SPEC: dict[str, Any] = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "3"}, "ttl": 0}


class World:
    """A state, a store, and what places what they show."""

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
        """Show a ConfigMap with these entries beside those before; None takes one away."""
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
        """Have the edit that is due made, and shown."""
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
    """Return a world whose entries have been looked at once."""
    world = World(*nodes)
    world.write(**entries)
    await world.look()
    return world


async def test_one_is_placed_and_that_is_written_into_its_entry() -> None:
    world = await looked_at(BIG, SMALL, r=SPEC)
    assert world.placed() == {"small": 1}
    assert held(world.state, "small") == 3000
    assert world.seated == ["small"]
    assert world.reasons == ["Placed"]
    assert (world.told[0].is_warning, world.placer.placed) == (False, 1)
    world.make()
    assert json.loads(world.data["r"])["placements"] == [{"node": "small", "slots": 1}]
    assert world.due() is None
    await world.look()
    assert world.reasons == ["Placed"]


BUSY = pod("busy", node="small", cpu="2")
OTHER = SPEC | {"node": "small", "resources": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("entries", "helps"),
    [
        ({"r": SPEC}, lambda state: state.node_seen(BIG)),
        ({"r": SPEC}, lambda state: state.node_seen(node("small", cpu="8"))),
        ({"r": SPEC}, lambda state: state.pod_gone(BUSY.name)),
        ({"r": SPEC}, lambda state: state.pod_seen(replace(BUSY, finished=True))),
        (
            {"r": SPEC | {"resources": {"cpu": "2"}}, "other": OTHER},
            lambda state: state.ledger.drop(ref("other")),
        ),
    ],
    ids=["a node comes", "a node grows", "a pod goes", "a pod ends", "a hold ends"],
)
async def test_one_waits_for_what_helps_and_is_told_of_once(
    entries: dict[str, Any], helps: Callable[[State], None]
) -> None:
    world = World(SMALL)
    world.state.pod_seen(BUSY)
    world.write(**entries)
    for _ in range(3):
        await world.look()
    assert world.phase() is Phase.PENDING
    assert world.state.ledger.obstacle(ref("r")).startswith("0/1 nodes are available: 1 ")
    assert world.reasons == ["NotPlaced"]
    assert world.told[0].is_warning
    helps(world.state)
    await world.look()
    assert world.phase() is Phase.ACTIVE
    assert world.reasons == ["NotPlaced", "Placed"]


async def test_the_oldest_comes_first_and_no_more_than_there_is_room_for() -> None:
    world = World()
    for number in range(5):
        world.write(**{f"r{number}": SPEC})
        await world.look()
    world.state.node_seen(BIG)
    await world.look()
    assert [world.phase(f"r{n}") is Phase.ACTIVE for n in range(5)] == [True, True] + [False] * 3
    world.write(r0=None)
    await world.look()
    assert world.phase("r2") is Phase.ACTIVE


async def test_a_change_elsewhere_is_no_reason_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await looked_at(SMALL, node("full", cpu="1"), r=SPEC | {"resources": {"cpu": "5"}})
    monkeypatch.setattr("reserver.extender.placing_pass.placing", None)  # Nothing may ask for it.
    world.state.node_seen(node("full", cpu="2"))
    await world.look()
    assert world.phase() is Phase.PENDING


async def test_it_is_moved_when_its_node_goes_and_comes_back_if_that_does() -> None:
    world = await looked_at(SMALL, r=SPEC)
    world.make()
    world.state.node_gone("small")
    await world.look()
    assert world.phase() is Phase.PENDING
    assert "no nodes available" in world.state.ledger.obstacle(ref("r"))
    world.state.node_seen(SMALL)
    await world.look()
    assert world.phase() is Phase.ACTIVE
    world.state.node_gone("small")
    world.state.node_seen(BIG)
    await world.look()
    assert world.placed() == {"big": 1}
    world.make()
    assert json.loads(world.data["r"])["placements"] == [{"node": "big", "slots": 1}]


async def test_a_pinned_one_stays_where_it_is() -> None:
    world = await looked_at(BIG, r=SPEC | {"node": "small"})
    assert world.phase() is Phase.FAILED
    assert world.due() is None


async def test_a_place_that_cannot_be_written_is_given_back_and_tried_later() -> None:
    world = await looked_at(BIG, r=SPEC)
    world.placer.refused(ref("r"), refused(HTTPStatus.FORBIDDEN))
    await world.look()
    assert held(world.state, "big") == 0
    assert world.phase() is Phase.PENDING
    assert "cannot be written down: 403" in world.state.ledger.obstacle(ref("r"))
    world.now += 4.0
    await world.look()
    assert world.phase() is Phase.PENDING
    world.now += 2.0
    await world.look()
    assert world.phase() is Phase.ACTIVE


async def test_what_could_not_be_written_but_is_over_or_written_is_left_alone() -> None:
    world = await looked_at(BIG, r=SPEC)
    world.make()
    world.placer.refused(ref("r"), ApiError(403, "", ""))
    world.placer.refused(ref("gone"), ApiError(403, "", ""))
    await world.look()
    assert world.placed() == {"big": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ttl": "1h"}, {"small": 1}),
        ({"resources": {"cpu": "4"}}, {"small": 1}),
        ({"resources": {"cpu": "5"}}, {"big": 1}),
        ({"resources": {"cpu": "9"}}, {"small": 1}),
        ({"placement": {"nodeSelector": {"disk": "ssd"}}}, {"big": 1}),
        ({"placement": {"nodeSelector": {"disk": "none"}}}, {}),
        ({"node": "big"}, {}),
    ],
    ids=[
        "another expiry",
        "what still fits",
        "what fits elsewhere",
        "what fits nowhere",
        "what may not be there",
        "what may be nowhere",
        "a node of its own",
    ],
)
async def test_an_edit_keeps_the_place_if_it_suits(
    change: dict[str, Any], expected: dict[str, int]
) -> None:
    world = await looked_at(SMALL, node("big", cpu="8", labels={"disk": "ssd"}), r=SPEC)
    world.make()
    world.write(r=json.loads(world.data["r"]) | change)
    await world.look()
    await world.look()
    assert world.placed() == expected


async def test_a_manager_that_writes_its_own_again_does_not_undo_it() -> None:
    world = await looked_at(SMALL, r=SPEC)
    world.make()
    world.write(r=SPEC)
    assert world.placed() == {"small": 1}
    assert held(world.state, "small") == 3000
    world.make()
    assert "placements" in world.data["r"]


async def test_a_restart_takes_the_place_that_is_written() -> None:
    world = await looked_at(BIG, SMALL, r=SPEC | {"placements": [{"node": "big", "slots": 1}]})
    assert world.placed() == {"big": 1}
    assert world.due() is None


async def test_an_object_is_placed_where_its_status_says() -> None:
    world = World(BIG, SMALL)
    where = Ref.of_object("shop", "web")
    world.objects.put(made(node=""))
    await world.look()
    assert world.state.ledger.placed(world.objects.known(where).reservation) == parts({"small": 1})  # type: ignore[union-attr, arg-type]
    status = {
        "phase": "Active",
        "observedGeneration": 1,
        "claimed": 0,
        "expiresAt": None,
        "placements": [{"node": "big", "slots": 1}],
        "claims": [],
        "conditions": [],
    }
    world.objects.put(made(node="", revision=2, status=status))
    assert held(world.state, "big") == 2000
    assert held(world.state, "small") == 0
    world.objects.put(made(node="", revision=3, status={"placements": "rubbish"}))
    assert held(world.state, "big") == 2000


async def test_those_that_are_alike_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(SMALL)
    world.write(**{f"r{n}": SPEC | {"resources": {"cpu": "5"}} for n in range(300)})
    judged = []

    def counted(reservation: Reservation, *rest: Any) -> Generator[None, None, Placed]:
        judged.append(reservation)
        return placing(reservation, *rest)

    monkeypatch.setattr("reserver.extender.placing_pass.placing", counted)
    await world.look()
    assert len(judged) == 1
    assert world.phase("r299") is Phase.PENDING


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
WIDE = {
    "owners": [{"selector": {"matchLabels": {"app": "web"}}}],
    "resources": {"cpu": "3"},
    "slots": 20,
    "ttl": 0,
    "placement": {"affinity": APART},
}


@pytest.mark.long
async def test_a_namespace_whose_thousand_fit_nowhere_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of the thousand asks for something else, so that each takes a search."""
    world, judged = World(SMALL), list[str]()

    def counted(reservation: Reservation, *rest: Any) -> Generator[None, None, Placed]:
        judged.append(str(reservation.ref))
        return placing(reservation, *rest)

    monkeypatch.setattr("reserver.extender.placing_pass.placing", counted)
    for number in range(1_000):
        asked, apart = {"cpu": str(5_000 + number)}, {"affinity": APART}
        world.objects.put(
            made(f"r{number}", namespace="greedy", node="", resources=asked, placement=apart)
        )
    await world.look()
    world.objects.put(made("web", namespace="shop", node=""))
    await world.look()
    assert world.state.ledger.phase(Ref.of_object("shop", "web")) is Phase.ACTIVE
    assert len(judged) == 2 * MOST_FAILED + 1
    for _ in range(1_000 // MOST_FAILED):
        world.placer.on_node_changed("small")  # Which may help each of them.
        await world.look()
    assert len(set(judged)) == 1_001


@pytest.mark.parametrize("home", [False, True])
async def test_a_namespace_whose_searches_take_long_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
    home: bool,  # noqa: FBT001 - of the table
) -> None:
    """All of them succeed: slots that are judged beside each other take seconds."""
    world, worked = World(node("wide", cpu="1000", pods="10000")), [0.0]
    looked: list[Ref] = []

    def slow(reservation: Reservation, *rest: Any) -> Generator[None, None, Placed]:
        looked.append(reservation.ref)
        worked[0] += PART_S / 4
        return (yield from placing(reservation, *rest))

    async def look() -> None:
        await world.placer.look(world.state, Pacer(turn_s=60.0, timer=lambda: worked[0]))

    monkeypatch.setattr("reserver.extender.placing_pass.placing", slow)
    if home:  # Managers are trusted.
        world.write(**{f"r{n}": SPEC | {"owners": [{"pod": {"name": f"a{n}"}}]} for n in range(20)})
    for number in range(0 if home else 20):
        world.objects.put(made(f"r{number}", namespace="greedy", node="", resources={"cpu": "1"}))
    await look()
    assert len(looked) == (20 if home else 4)
    world.objects.put(made("web", namespace="shop", node=""))
    await look()
    assert world.state.ledger.phase(Ref.of_object("shop", "web")) is Phase.ACTIVE
    for _ in range(20 // 4):
        await look()
    assert len(looked) == len(set(looked)) == 21


async def test_one_that_is_edited_while_its_slots_are_tried_is_placed_as_it_is_then() -> None:
    world = World(*(node(f"n{n}", cpu="4", labels={HOSTNAME: f"n{n}"}) for n in range(30)))
    world.write(r=WIDE)
    looking = asyncio.ensure_future(world.placer.look(world.state, Pacer(turn_s=0.0)))
    for _ in range(10):  # Some are tried by then; each step waits for five rounds of the loop.
        await asyncio.sleep(0)
    assert not world.state.snapshot.requested.any()
    world.write(r=WIDE | {"slots": 2, "resources": {"cpu": "4"}})
    await looking
    assert world.placed() == {}
    await world.look()
    assert sum(world.placed().values()) == len(world.placed()) == 2
    assert held(world.state, next(iter(world.placed()))) == 4000
    assert world.reasons == ["Placed"]


VACATED = Closure("were in maintenance", is_vacated=True)


async def closed(world: World, **closures: Closure) -> None:
    """Close nodes, and have what is placed there looked at, as a feature does."""
    for name in world.state.closures.set({each: frozenset({n}) for n, each in closures.items()}):
        world.state.listener.on_node_changed(name)
    world.placer.unsuited(ref("r"), anywhere=False)
    await world.look()


async def test_one_leaves_a_node_that_is_vacated_and_does_not_come_back() -> None:
    world = await looked_at(BIG, SMALL, r=SPEC)
    await closed(world, small=VACATED)
    assert world.placed() == {"big": 1}
    assert held(world.state, "small") == 0
    await closed(world)
    assert world.placed() == {"big": 1}


async def test_one_stays_on_a_vacated_node_until_there_is_another_place() -> None:
    world = await looked_at(SMALL, r=SPEC)
    await closed(world, small=VACATED)
    assert world.placed() == {"small": 1}
    assert world.phase() is Phase.ACTIVE
    assert held(world.state, "small") == 3000
    world.state.node_seen(BIG)
    await world.look()
    assert world.placed() == {"big": 1}


def seat_in_zone(key: str) -> Reservation:
    """Return a seat in zone a whose pod may be anywhere."""
    placement = demanding(node_selector=equals({"zone": "a"}))
    made = reservation(key, node="", owners=(key,), placement=placement, cpu="4")
    return identified(replace(made, is_seat=True, fallback=ANYWHERE))


async def test_a_seat_that_may_be_anywhere_goes_on_from_place_to_place() -> None:
    """Its pod was evicted for it."""
    world = World(node("a", cpu="4", labels={"zone": "a"}))
    world.state.ledger.put(seat_in_zone("r"))
    await world.look()
    assert world.placed() == {"a": 1}
    busy = pod("busy", node="b", cpu="2")
    world.state.pod_seen(busy)
    world.placer.unsuited(ref("r"), anywhere=True)
    for there in ("b", "c"):
        world.state.node_gone(*world.placed())
        await world.look()
        world.state.node_seen(node(there, cpu="4"))
        await world.look()
        world.state.pod_gone(busy.name)
        await world.look()
        assert world.placed() == {there: 1}
        world.placer.on_reservation_changed(ref("r"))  # It is written down.
        await world.look()


async def test_a_seat_that_finds_no_place_in_its_zone_keeps_none_from_going_anywhere() -> None:
    world = World(node("a", cpu="8", labels={"zone": "a"}))
    world.state.ledger.put(replace(seat_in_zone("bound"), fallback=None))
    world.state.ledger.put(seat_in_zone("free"))
    await world.look()
    world.state.node_gone("a")
    world.state.node_seen(node("b", cpu="8"))
    world.placer.unsuited(ref("free"), anywhere=True)
    await world.look()
    assert (world.placed("bound"), world.placed("free")) == ({"a": 1}, {"b": 1})


async def test_who_has_a_hundred_on_a_vacated_node_leaves_their_turn_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no other place for any of them, which whatever changes may bring."""
    world, looked_for = World(node("small", cpu="400")), list[str]()

    def counted(moved: Reservation, *rest: Any) -> Generator[None, None, Placed]:
        looked_for.append(str(moved.ref))
        return moving_off(moved, *rest)

    monkeypatch.setattr("reserver.extender.placing_pass.moving_off", counted)
    for number in range(100):
        world.objects.put(made(f"r{number}", namespace="greedy", node="", resources={"cpu": "1"}))
    await world.look()
    world.state.node_seen(node("tiny", cpu="500m"))
    for number in range(100):
        world.placer.unsuited(Ref.of_object("greedy", f"r{number}"), anywhere=False)
    await closed(world, small=VACATED)
    before = len(looked_for)
    world.objects.put(made("web", namespace="shop", node="", resources={"cpu": "500m"}))
    world.placer.on_node_changed("tiny")
    await world.look()
    assert world.state.ledger.phase(Ref.of_object("shop", "web")) is Phase.ACTIVE
    assert len(looked_for) - before == MOST_FAILED
    for _ in range(100 // MOST_FAILED):
        world.placer.on_node_changed("tiny")
        await world.look()
    assert len(set(looked_for)) == 100


async def test_a_claimed_slot_stays_with_its_pod_on_a_vacated_node() -> None:
    world = World(SMALL)
    world.write(
        r={**SPEC, "owners": [{"selector": {"matchLabels": {"app": "web"}}}], "slots": 2}
        | {"resources": {"cpu": "1"}}
    )
    await world.look()
    owner = pod("a", node="small", cpu="1", claims=(world.reservation(),), labels={"app": "web"})
    world.state.pod_seen(owner)
    world.state.node_seen(BIG)
    await closed(world, small=VACATED)
    assert world.placed() == {"big": 1, "small": 1}
    assert held(world.state, "small") == 0
    assert held(world.state, "big") == 1000


async def test_one_that_is_edited_leaves_a_vacated_node() -> None:
    world = await looked_at(BIG, SMALL, r=SPEC)
    world.make()
    world.state.closures.set({VACATED: frozenset({"small"})})
    world.write(r={**SPEC, "resources": {"cpu": "2"}})
    await world.look()
    assert world.placed() == {"big": 1}
