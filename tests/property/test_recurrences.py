"""Ten thousand schedules: no occurrence twice, none lost, none early, all as announced."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from reserver.base.schedule import Occurrence, Schedule
from reserver.reservations.recurrence import Recurrence

SCHEDULES, YEARS, PARTS = 10_000, 10, 4
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")


def drawn(luck: random.Random) -> Recurrence:
    """Return a recurrence with fixed times, which may have gaps, a lead and what is skipped."""
    minute, hour = luck.randrange(60), luck.randrange(24)
    days = luck.choice(("* * *", "* * 1-5", "1,15 * *", "* */3 0", "29 2 *"))
    days = days if len(days.split()) == 3 else "* * *"
    schedule = Schedule(f"{minute} {hour} {days}", luck.choice((MINUTE, 8 * HOUR, 23 * HOUR)))
    zoned = Schedule(schedule.cron, schedule.duration, luck.choice(ZONES))
    return Recurrence(schedule=zoned, lead=luck.choice((0.0, HOUR)))


def passing(recurrence: Recurrence, now: float, until: float) -> Iterator[Occurrence]:
    """Yield the occurrences as the ledger comes to them: at the end of each the next one."""
    while (found := recurrence.at(now)) is not None and found.start < until:
        yield found
        now = found.end


def test_each_occurrence_comes_once_in_its_turn_and_as_it_was_announced() -> None:
    luck = random.Random(75)
    for _ in range(SCHEDULES):
        recurrence = drawn(luck)
        now = BEGIN.timestamp() + luck.random() * 300 * DAY
        told = recurrence.shown(now)
        come = list(passing(recurrence, now, told[-1].start + 1))
        assert tuple(come) == told
        for before, after in pairwise(told):
            assert before.start < before.end <= after.start
        first = told[0]
        assert first.end > now
        # Whoever looks at another moment of it sees the same.
        for at in (first.start, (first.start + first.end) / 2, first.end - 1):
            assert recurrence.at(at) == first
        left_out = Recurrence(schedule=recurrence.schedule, skipped=(told[1].start,))
        assert left_out.shown(now)[:2] == (told[0], told[2])


@pytest.mark.parametrize("part", range(PARTS))
def test_where_clocks_change_a_gap_moves_and_an_overlap_counts_once(part: int) -> None:
    """Against `zoneinfo` alone: in every zone, on each day of ten years on which clocks change."""
    checked = 0
    for zone in sorted(available_timezones())[part::PARTS]:
        there = ZoneInfo(zone)
        for day in changes(there):
            check(zone, there, day)
            checked += 1
    assert checked > YEARS


def changes(zone: ZoneInfo) -> Iterator[date]:
    """Yield the days before which the offset of a zone changes."""
    before = None
    for number in range(YEARS * 365):
        day = BEGIN + timedelta(days=number, hours=12)
        offset = day.astimezone(zone).utcoffset()
        if before is not None and offset != before:
            yield day.astimezone(zone).date()
        before = offset


def check(zone: str, there: ZoneInfo, day: date) -> None:
    """Compare the starts around a change of clocks with what these show."""
    days = [day + timedelta(days=number) for number in (-1, 0, 1)]
    after = datetime.combine(day - timedelta(days=2), time(23, 59), there).timestamp()
    for minutes in (0, 30, 60, 90, 120, 135, 150, 180, 210, 1380, 1410):
        at = time(*divmod(minutes, 60))
        starts = Schedule(f"{at.minute} {at.hour} * * *", MINUTE, zone).starts(after)
        expected = {first_shown(datetime.combine(each, at), there) for each in days}
        assert [next(starts) for _ in expected] == sorted(expected), (zone, day, at)


def first_shown(wall: datetime, zone: ZoneInfo) -> float:
    """Return when clocks first show a time, or the first one that they show after it."""
    early = wall.replace(tzinfo=zone, fold=0)
    moment = early.timestamp()
    if datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0) == wall:
        return moment
    # In a gap: its end is where the offset changes, between both readings of the time.
    late, early_s = moment, wall.replace(tzinfo=zone, fold=1).timestamp()
    low, high = int(min(late, early_s)), int(max(late, early_s))
    after = datetime.fromtimestamp(high, zone).utcoffset()
    while low < high:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == after:
            high = middle
        else:
            low = middle + 1
    return float(low)
