"""Reservations without a node find one, or wait for one."""

import json
from collections.abc import Callable, Generator
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.placement import Placed, placing
from reserver.scheduling.state import State
from tests.builders import held, node, parts, pod, ref
from tests.unit.extender.placer.world import BIG, SMALL, SPEC, World, looked_at
from tests.unit.k8s.fakes import refused
from tests.unit.stores.test_object_cache import made


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


async def test_the_obstacle_is_of_now_though_the_clock_was_set_back() -> None:
    """The old one stayed for as long as the clock was set back."""
    world = await looked_at(SMALL, r=SPEC | {"slots": 3})
    before = world.state.ledger.obstacle(ref("r"))
    world.now -= 3600
    world.state.node_seen(node("another", cpu="4"))
    await world.look()
    assert world.state.ledger.obstacle(ref("r")) != before


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
