"""The bounds on the cost of a hostile tenant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hack.hostile.bounds import Found, judge, quantile
from hack.hostile.probe import Hold, Phase

LOG = """\
{"event": "collection listed", "level": "info"}
{"seconds": 0.31, "by": "a.b", "task": "T", "cpu_seconds": 0.2, "event": "event loop held"}
half a li
"""


def phase(**changes: Any) -> Phase:
    calls = [0.001] * 90 + [0.005] * 10
    return replace(Phase("any", seconds=calls, floor=calls, looks=[0.01], rss=200 << 20), **changes)


def found(**changes: Any) -> Found:
    starts = [9.0, 8.0, 10.0]
    return Found(
        quiet=phase(),
        hostile=phase(**changes),
        quiet_starts=starts,
        hostile_starts=changes.pop("starts", starts),
        ended=0,
    )


def broken(one: Found) -> set[str]:
    return {row.what for row in judge(one) if not row.is_kept}


def test_what_costs_nothing_breaks_no_bound() -> None:
    assert not broken(found())


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"seconds": [0.001] * 90 + [0.016] * 10}, "Filter p99 in floors"),
        ({"seconds": []}, "Filter p99 in floors"),
        ({"held": [Hold("a", "b", 0.21, 0.1)]}, "event loop held"),
        ({"held": [Hold("a", "b", 0.2, 0.11)]}, "of CPU"),
        ({"unready": 1}, "not ready"),
        ({"failures": ["no"]}, "calls that failed"),
        ({"given_away": 1}, "held nodes offered"),
        ({"rss": 513 << 20}, "RSS"),
    ],
)
def test_what_costs_too_much_breaks_a_bound(changes: dict[str, Any], what: str) -> None:
    assert broken(found(**changes)) == {what}


@pytest.mark.parametrize(
    ("floor", "is_kept"), [(0.001, False), (0.005, False), (0.0052, False), (0.0054, True)]
)
def test_what_the_machine_does_to_any_answer_is_not_reservers(
    floor: float, *, is_kept: bool
) -> None:
    slower = found(seconds=[0.001] * 90 + [0.016] * 10, floor=[0.001] * 90 + [floor] * 10)
    assert ("Filter p99 in floors" not in broken(slower)) is is_kept


def test_a_slow_machine_may_compute_for_longer_and_not_more() -> None:
    long = found(held=[Hold("a", "b", 0.39, 0.19)])
    assert broken(long) == {"event loop held", "of CPU"}
    assert not broken(replace(long, slowness=2.0))
    assert broken(replace(long, slowness=1.8)) == {"event loop held", "of CPU"}


def test_a_start_may_take_twice_as_long_and_reserver_may_not_end() -> None:
    assert not broken(replace(found(), hostile_starts=[18.0] * 3))
    assert broken(replace(found(), hostile_starts=[18.1] * 3)) == {"restart to ready"}
    assert broken(replace(found(), ended=1)) == {"ended by itself"}


def test_without_values_no_bound_is_kept() -> None:
    assert quantile([], 0.5) == float("inf")
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_what_held_the_loop_is_read_from_the_log() -> None:
    assert list(Hold.read(LOG)) == [Hold("a.b", "T", 0.31, 0.2)]
