"""Namespaces take turns, however many of their reservations wait."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from reserver.base.pacer import Pacer
from reserver.cluster.node import HOSTNAME
from reserver.extender.placing_pass import MOST_FAILED, PART_S
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.placement import Placed, placing
from reserver.scheduling.suitability import moving_off
from tests.builders import held, node
from tests.unit.extender.placer.world import SMALL, SPEC, VACATED, World, closed
from tests.unit.stores.test_object_cache import made

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
    """Each of the thousand requests other resources, so that each takes a search."""
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
        world.placer.on_node_changed("small")  # May help each of the thousand.
        await world.look()
    assert len(set(judged)) == 1_001


@pytest.mark.parametrize("home", [False, True])
async def test_a_namespace_whose_searches_take_long_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
    home: bool,  # noqa: FBT001 - of the table
) -> None:
    """All placements succeed: slots that are judged together take seconds."""
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


async def test_who_has_a_hundred_on_a_vacated_node_leaves_their_turn_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No reservation has another place, but each change of the cluster may open one."""
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
