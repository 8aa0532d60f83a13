"""The place of a reservation that waits for room."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reserver.cli.lookup import place_in_line
from reserver.client import Phase, PlacedSlots, PodOwner, ReservationInfo, Spec

SPEC = Spec(owners=(PodOwner(namespace="shop", name="web-0"),), resources={"cpu": "1"})


def info(
    name: str, minute: int, *, phase: Phase = Phase.ACTIVE, backed: bool = False, node: str = "a"
) -> ReservationInfo:
    return ReservationInfo(
        name=name,
        id=f"shop/{name}",
        spec=SPEC,
        etag="",
        phase=phase,
        is_backed=backed,
        message="",
        claims=(),
        placements=(PlacedSlots(node, 1),),
        since=datetime(2030, 1, 31, 10, minute, tzinfo=UTC),
    )


def test_those_that_were_written_earlier_and_wait_there_are_before_it() -> None:
    others = [
        info("train", 2),
        info("held", 1, backed=True),
        info("elsewhere", 1, node="b"),
        info("later", 9, phase=Phase.PENDING),
        info("young", 8),
    ]
    assert place_in_line(info("mine", 5), others) == "is second in line for a, after train"
    assert place_in_line(info("mine", 1), others) == "is first in line for a"
    many = [info(f"r{number:02}", number) for number in range(20)]
    assert place_in_line(many[11], many) == "is number 12 in line for a, after r10"


@pytest.mark.parametrize(
    "reservation",
    [
        info("a", 1, backed=True),
        info("a", 1, phase=Phase.PENDING),
        info("a", 1, phase=Phase.FAILED),
    ],
)
def test_one_that_does_not_wait_for_its_node_has_no_place(reservation: ReservationInfo) -> None:
    assert place_in_line(reservation, [info("b", 0)]) == ""
