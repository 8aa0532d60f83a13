"""The storm of moves says when its hard moves went wrong, or never occurred."""

from __future__ import annotations

from collections import Counter

import pytest

from hack.chaos.moving.hardships import wrongs_of

GOOD = {
    "local volumes": Counter(NotMovable=4),
    "closing targets": Counter(Landed=5, LandedElsewhere=2, SeatImpossible=1),
    "twins of default": Counter(Landed=2),
    "twins of other": Counter(Landed=1, LandedElsewhere=1),
}


def test_hard_moves_that_end_as_promised_are_right() -> None:
    assert wrongs_of(GOOD, closed=1) == []


@pytest.mark.parametrize(
    ("what", "reasons"),
    [
        ("local volumes", Counter(NotMovable=3, Landed=1)),
        ("local volumes", Counter(NotMovable=3)),
        ("closing targets", Counter(Landed=7)),
        ("twins of default", Counter[str]()),
        ("twins of other", Counter(Landed=1, DeadlineExceeded=1)),
    ],
)
def test_hard_moves_that_end_otherwise_or_never_came_are_wrong(
    what: str, reasons: Counter[str]
) -> None:
    (wrong,) = wrongs_of(GOOD | {what: reasons}, closed=1)
    assert what in wrong


def test_a_storm_in_which_no_target_closed_is_wrong() -> None:
    assert wrongs_of(GOOD, closed=0) == ["no target closed while a pod moved there"]
