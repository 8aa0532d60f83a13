"""A window on a day on which clocks change: against `zoneinfo`, from its drain to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reserver.base.pacer import outcome
from reserver.maintenance.codec import read_object
from reserver.maintenance.decide import decide
from reserver.maintenance.model import ObservedNode, Window
from reserver.maintenance.turns import Turn
from tests.property.test_recurrences import changes, first_shown
from tests.unit.maintenance.test_codec import item

HOUR, DAY = 3600.0, 86_400.0
DRAIN_S, LASTS_S = 5 * HOUR, 2 * HOUR
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca")


def written(at: datetime, zone: ZoneInfo) -> Window:
    """Return a window of each day at a time, as a user writes the window."""
    cron = {"cron": f"{at.minute} {at.hour} * * *", "duration": "2h", "timeZone": str(zone)}
    return read_object(item(nodes=["a"], schedule=cron, drainBefore="5h", start=None, end=None))


def cordons(window: Window, begin: float, until: float) -> Iterator[tuple[float, bool]]:
    """Yield the times of cordons and uncordons; each pass names the time of the next."""
    now, node = begin, ObservedNode(name="a")
    while now < until:
        found = outcome(decide([Turn(window.at(now), frozenset("a"))], [node], now))
        if goal := found.goals.get("a"):
            if goal.cordon is not None and goal.cordon != node.is_cordoned:
                yield now, goal.cordon
            is_cordoned = node.is_cordoned if goal.cordon is None else goal.cordon
            node = replace(node, uses=goal.uses, is_cordoned=is_cordoned)
        assert found.next_at > now
        now = found.next_at


def hidden_or_twice(zone: ZoneInfo, day: datetime) -> Iterator[datetime]:
    """Yield the quarter hours of a day that its clocks skip or repeat."""
    for number in range(96):
        wall = day + timedelta(minutes=15 * number)
        if len({wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)}) > 1:
            yield wall


@pytest.mark.parametrize("name", ZONES)
def test_a_window_starts_at_the_end_of_a_gap_and_once_in_an_overlap(name: str) -> None:
    zone, gaps, overlaps = ZoneInfo(name), 0, 0
    for day in changes(zone):
        midnight = datetime.combine(day, datetime.min.time())
        for wall in hidden_or_twice(zone, midnight):
            start = first_shown(wall, zone)
            # From a day before the drain on, until the next day's drain would begin.
            come = list(cordons(written(wall, zone), start - DAY, start + DAY - DRAIN_S - HOUR))
            assert come[-2:] == [(start - DRAIN_S, True), (start + LASTS_S, False)], (wall, come)
            assert len(come) <= 4, "each occurrence cordons once, and uncordons once"
            shown = datetime.fromtimestamp(start, zone).replace(tzinfo=None)
            assert shown >= wall
            gaps, overlaps = gaps + (shown > wall), overlaps + (shown == wall)
    assert min(gaps, overlaps) >= 10


@pytest.mark.parametrize(
    ("wall", "starts", "drains"),
    [
        # A gap from 2:00 to 3:00, and an overlap from 3:00 to 2:00: five hours on no clock.
        ((2030, 3, 31, 2, 30), "2030-03-31T03:00:00+02:00", "2030-03-30T21:00:00+01:00"),
        ((2030, 3, 31, 4), "2030-03-31T04:00:00+02:00", "2030-03-30T22:00:00+01:00"),
        ((2030, 10, 27, 2, 30), "2030-10-27T02:30:00+02:00", "2030-10-26T21:30:00+02:00"),
        ((2030, 10, 27, 4), "2030-10-27T04:00:00+01:00", "2030-10-27T00:00:00+02:00"),
    ],
)
def test_the_time_before_a_start_is_counted_in_real_seconds(
    wall: tuple[int, ...], starts: str, drains: str
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    at = datetime(*wall)  # type: ignore[arg-type]  # noqa: DTZ001 - as a clock shows it
    start = datetime.fromisoformat(starts).timestamp()
    window = written(at, zone).at(start - 1)
    assert window.period.start == start
    assert datetime.fromtimestamp(window.drain_at, zone).isoformat() == drains
    assert window.period.end - start == LASTS_S
