"""The resources held over time, and the unused share."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reserver.cli import formatting, report_sums
from reserver.cli.report_sums import Fate, Held
from reserver.client import (
    Claim,
    OccurrenceInfo,
    PastClaim,
    PastReservation,
    Phase,
    PlacedSlots,
    PodOwner,
    RecurringSchedule,
    ReservationInfo,
    Spec,
)
from reserver.client.spec_parts import Nodes
from reserver.reservations.enums import Outcome

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def past(slots: int = 1, claims: tuple[PastClaim, ...] = (), claimed: int = 0) -> PastReservation:
    return PastReservation(
        name="a",
        id="reserver-system/reservations/a",
        owner_namespace="shop",
        owners="shop/pod/web-0",
        outcome=Outcome.EXPIRED,
        since=NOON - 4 * HOUR,
        ended=NOON - HOUR,
        expires_at=NOON - HOUR,
        nodes=("worker-1",),
        resources={"cpu": "1500m", "memory": "2Gi"},
        slots=slots,
        claimed=claimed or len(claims),
        claims=claims,
    )


def present(**changes: object) -> ReservationInfo:
    one = ReservationInfo(
        name="b",
        id="reserver-system/reservations/b",
        spec=Spec(
            owners=(PodOwner(namespace="shop", name="web-0"),), resources={"cpu": "2"}, slots=2
        ),
        etag="1",
        phase=Phase.ACTIVE,
        is_backed=True,
        message="",
        claims=(Claim("shop/web-0", "u"),),
        placements=(PlacedSlots("worker-1", 2),),
        since=NOON - 2 * HOUR,
    )
    return replace(one, **changes)  # type: ignore[arg-type]


def hours(held: list[Held], back: int = 24) -> dict[Fate, float]:
    ((_, sums),) = report_sums.summed(
        held, NOON - back * HOUR, NOON, lambda e: (e.namespace,)
    ).items()
    return sums.hours


def test_each_slot_of_what_is_over_counts_until_it_was_claimed_and_the_others_as_unused() -> None:
    early = PastClaim("shop/a", "u", "worker-1", NOON - 3 * HOUR)
    unknown = PastClaim("shop/b", "v", "worker-1", None)
    held = list(report_sums.of_past(past(4, (early, unknown), claimed=3), "cpu"))
    assert hours(held) == {Fate.USED: 1.5 * (1 + 3 + 3), Fate.UNUSED: 1.5 * 3, Fate.OPEN: 0.0}
    assert hours(held, back=2)[Fate.UNUSED] == 1.5
    assert hours(list(report_sums.of_past(past(), "memory")))[Fate.UNUSED] == 6.0
    assert list(report_sums.of_past(past(), "nvidia.com/gpu")) == []
    assert list(report_sums.of_past(replace(past(), nodes=()), "cpu")) == []  # Never held.


def test_what_there_is_counts_with_its_claimed_slots_as_used() -> None:
    held = list(report_sums.of_present(present(), "cpu", NOON))
    assert hours(held) == {Fate.USED: 4.0, Fate.UNUSED: 0.0, Fate.OPEN: 4.0}
    claimed = present(phase=Phase.CLAIMED, claims=(Claim("a", "a"), Claim("b", "b")))
    assert hours(list(report_sums.of_present(claimed, "cpu", NOON)))[Fate.USED] == 8.0
    spec = replace(present().spec, expires_at=NOON - HOUR, starts_at=NOON - 1.5 * HOUR)
    over = present(phase=Phase.EXPIRED, spec=replace(spec, slots=1), claims=())
    held = list(report_sums.of_present(over, "cpu", NOON))
    assert hours(held) == {
        Fate.USED: 0.0,
        Fate.UNUSED: 1.0,
        Fate.OPEN: 0.0,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": Phase.PENDING},
        {"phase": None},
        {"placements": ()},
        {"since": None},
    ],
)
def test_what_holds_nothing_does_not_count(changes: dict[str, object]) -> None:
    assert list(report_sums.of_present(present(**changes), "cpu", NOON)) == []


def test_what_was_released_when_idle_held_until_then() -> None:
    spec = replace(present().spec, release_if_idle=HOUR / 2)
    idle = present(spec=spec, phase=Phase.EXPIRED, reason="Idle", idle_since=NOON - HOUR, claims=())
    assert hours(list(report_sums.of_present(idle, "cpu", NOON)))[Fate.UNUSED] == 2 * 2 * 1.5


OFFERS = {"worker-1": 8.0, "worker-2": 16.0}


def test_whole_nodes_count_all_that_they_offer_until_their_end() -> None:
    claims = tuple(PastClaim(f"shop/{n}", n, "worker-1", NOON - 3 * HOUR) for n in "abc")
    nodes = ("worker-1", "worker-2", "gone")
    over = replace(past(4, claims, claimed=1), nodes=nodes, resources={"nodes": "1"})
    assert hours(list(report_sums.of_past(over, "cpu", OFFERS))) == {
        Fate.USED: 12.0 * 3,
        Fate.UNUSED: 12.0 * 3 * 3,
        Fate.OPEN: 0.0,
    }
    assert hours(list(report_sums.of_past(over, "nodes")))[Fate.USED] == 3.0
    assert list(report_sums.of_past(replace(over, nodes=("gone",)), "cpu", OFFERS)) == []
    places = tuple(PlacedSlots(node, 1) for node in OFFERS)
    spec = replace(present().spec, resources={}, slots=1, nodes=Nodes(2))
    whole = present(spec=spec, placements=places)
    assert hours(list(report_sums.of_present(whole, "cpu", NOON, OFFERS)))[Fate.OPEN] == 24.0 * 2
    assert list(report_sums.of_present(whole, "nvidia.com/gpu", NOON)) == []


def test_what_recurs_counts_from_the_occurrence_under_way() -> None:
    schedule = RecurringSchedule(cron="0 11 * * *", duration=2 * HOUR, lead=HOUR / 2)
    spec, since = replace(present().spec, schedule=schedule), NOON - 240 * HOUR
    occurrences = tuple(OccurrenceInfo(NOON - HOUR + n * HOUR, NOON + n * HOUR) for n in (0, 24))
    daily = present(spec=spec, since=since, occurrences=occurrences)
    assert hours(list(report_sums.of_present(daily, "cpu", NOON)), 240)[Fate.OPEN] == 2 * 1.5
    new = present(spec=spec, since=NOON - HOUR / 4, occurrences=occurrences)
    assert hours(list(report_sums.of_present(new, "cpu", NOON)))[Fate.OPEN] == 2 * 0.25


def test_an_owner_is_the_same_before_and_after() -> None:
    _, one = report_sums.of_present(present(), "cpu", NOON)
    (other,) = report_sums.of_past(past(), "cpu")
    assert (one.namespace, one.owner) == (other.namespace, other.owner) == ("shop", "pod/web-0")
    assert formatting.owner(PodOwner(namespace="shop", name="web-0")) == "shop/pod/web-0"


def test_who_held_most_comes_first() -> None:
    (one,) = report_sums.of_past(past(), "cpu")
    held = [one, replace(one, namespace="bank", amount=9.0, reservation="b"), one]
    sums = report_sums.summed(held, NOON - 24 * HOUR, NOON, lambda each: (each.namespace,))
    assert list(sums) == [("bank",), ("shop",)]
    assert [len(each.reservations) for each in sums.values()] == [1, 1]


def test_over_time_each_part_has_what_was_held_on_average() -> None:
    (one,) = report_sums.of_past(past(), "cpu")  # From 8 to 11.
    parts = report_sums.over_time([one], NOON - 24 * HOUR, NOON)
    assert [begin for begin, _ in parts] == [NOON - (24 - n) * HOUR for n in range(24)]
    assert [mean[Fate.UNUSED] for _, mean in parts] == [0.0] * 20 + [1.5] * 3 + [0.0]
    halves = report_sums.over_time([one], NOON - 48 * HOUR, NOON)
    assert [mean[Fate.UNUSED] for _, mean in halves][-2:] == [1.5, 0.75]
