"""Reservations that are edited keep their node, or leave it."""

import json
from typing import Any

import pytest

from reserver.reservations.enums import Phase
from tests.builders import held, node
from tests.unit.extender.placer.world import BIG, SMALL, SPEC, VACATED, looked_at


async def test_a_pinned_one_stays_where_it_is() -> None:
    world = await looked_at(BIG, r=SPEC | {"node": "small"})
    assert world.phase() is Phase.FAILED
    assert world.due() is None


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


async def test_one_that_is_edited_leaves_a_vacated_node() -> None:
    world = await looked_at(BIG, SMALL, r=SPEC)
    world.make()
    world.state.closures.set({VACATED: frozenset({"small"})})
    world.write(r={**SPEC, "resources": {"cpu": "2"}})
    await world.look()
    assert world.placed() == {"big": 1}
