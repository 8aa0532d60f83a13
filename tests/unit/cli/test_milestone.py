"""Milestones of a reservation, as `create --wait` and `wait` judge them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reserver.cli.wait import Milestone, is_reached, starts_later, was_reached
from reserver.client import Outcome, Phase, PodOwner, ReservationInfo, Spec

NOW = datetime(2030, 1, 31, 10, tzinfo=UTC)


def info(
    phase: Phase | None,
    *,
    backed: bool = False,
    reusable: bool = False,
    starts_at: datetime | None = None,
) -> ReservationInfo:
    spec = Spec(
        owners=(PodOwner(namespace="shop", name="web-0"),),
        resources={"cpu": "1"},
        reusable=reusable,
        starts_at=starts_at,
    )
    return ReservationInfo(
        name="a", id="s/a", spec=spec, etag="", phase=phase, is_backed=backed, message="", claims=()
    )


@pytest.mark.parametrize(
    ("reservation", "reached"),  # In force, claimed, ended.
    [
        (info(Phase.ACTIVE, backed=True), (True, False, False)),
        (info(Phase.ACTIVE), (False, False, False)),
        (info(Phase.PENDING), (False, False, False)),
        (info(Phase.FAILED), (False, False, False)),
        (info(Phase.CLAIMED), (True, True, True)),
        (info(Phase.CLAIMED, reusable=True), (True, True, False)),
        (info(Phase.EXPIRED), (None, None, True)),
        (info(Phase.INVALID), (None, None, None)),
        (info(None), (False, False, False)),
    ],
)
def test_each_phase_is_a_milestone_or_not(
    reservation: ReservationInfo, reached: tuple[bool | None, ...]
) -> None:
    assert tuple(is_reached(reservation, each) for each in Milestone) == reached


def test_one_that_is_gone_was_claimed_or_has_only_ended() -> None:
    assert all(was_reached(Outcome.CLAIMED, each) for each in Milestone)
    for outcome in (Outcome.REMOVED, Outcome.EXPIRED, None):
        assert [was_reached(outcome, each) for each in Milestone] == [False, False, True]


def test_a_later_start_is_no_lack_of_room() -> None:
    later = info(Phase.PENDING, starts_at=NOW + timedelta(hours=1))
    assert starts_later(later, NOW)
    assert not starts_later(later, NOW + timedelta(hours=1))
    assert not starts_later(info(Phase.PENDING), NOW)
