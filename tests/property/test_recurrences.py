"""Ten thousand schedules: no occurrence twice, none lost, none early, all as announced."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from reserver.base.schedule import Occurrence, Schedule
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.recurrence import SHOWN, Recurrence
from reserver.reservations.reservation import Ref
from tests.builders import node, reservation

SCHEDULES, YEARS, PARTS = 10_000, 10, 4
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
DAYS: dict[str, Callable[[date], bool]] = {
    "* * *": lambda _: True,
    "* * 1-5": lambda day: day.weekday() < 5,
    "1,15 * *": lambda day: day.day in {1, 15},
    "* */3 0": lambda day: day.month in {1, 4, 7, 10} and day.weekday() == 6,
    "29 2 *": lambda day: (day.month, day.day) == (2, 29),
}
"""Days as cron has them, and as a calendar does."""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")


class Drawn(NamedTuple):
    """A recurrence with a fixed time, and what it is meant to be.

    Attributes:
        at: its time of day.
        is_its_day: tells its days from others.
    """

    recurrence: Recurrence
    at: time
    is_its_day: Callable[[date], bool]

    def expected(self, now: float) -> list[Occurrence]:
        """Return the occurrence under way and the next ones, by a calendar and clocks alone."""
        schedule, found = self.recurrence.schedule, list[Occurrence]()
        zone = ZoneInfo(schedule.zone)
        day = datetime.fromtimestamp(now, zone).date() - timedelta(days=3)
        starts = list[float]()
        while len(found) < SHOWN:
            if self.is_its_day(day):
                starts.append(first_shown(datetime.combine(day, self.at), zone))
                if len(starts) > 1 and (start := starts[-2]) != starts[-1]:
                    end = min(start + schedule.duration, starts[-1])
                    found += [Occurrence(start, end)] if end > now else []
            day += timedelta(days=1)
        return found


def drawn(luck: random.Random) -> Drawn:
    """Draw a recurrence, which may have a lead."""
    at, days = time(luck.randrange(24), luck.randrange(60)), luck.choice(list(DAYS))
    cron, duration = f"{at.minute} {at.hour} {days}", luck.choice((MINUTE, 8 * HOUR, 23 * HOUR))
    schedule = Schedule(cron, duration, luck.choice(ZONES))
    return Drawn(Recurrence(schedule=schedule, lead=luck.choice((0.0, HOUR))), at, DAYS[days])


def passing(recurrence: Recurrence, now: float, until: float) -> Iterator[Occurrence]:
    """Yield the occurrences as the ledger comes to them: at the end of each the next one."""
    while (found := recurrence.at(now)) is not None and found.start < until:
        yield found
        now = found.end


def test_each_occurrence_comes_once_in_its_turn_and_as_it_was_announced() -> None:
    luck = random.Random(75)
    for _ in range(SCHEDULES):
        it = drawn(luck)
        recurrence = it.recurrence
        now = BEGIN.timestamp() + luck.random() * 300 * DAY
        told = recurrence.shown(now)
        come = list(passing(recurrence, now, told[-1].start + 1))
        assert tuple(come) == told == tuple(it.expected(now))
        for before, after in pairwise(told):
            assert before.start < before.end <= after.start
        first = told[0]
        assert first.end > now
        # Whoever looks at another moment of it sees the same.
        for at in (first.start, (first.start + first.end) / 2, first.end - 1):
            assert recurrence.at(at) == first
        left_out = Recurrence(schedule=recurrence.schedule, skipped=(told[1].start,))
        assert left_out.shown(now)[:2] == (told[0], told[2])


def test_a_ledger_holds_each_occurrence_from_its_lead_to_its_end_and_nothing_between() -> None:
    luck, once, there = random.Random(76), reservation("r", cpu="2"), node("worker-1")
    for _ in range(SCHEDULES):
        recurrence, snapshot = drawn(luck).recurrence, Snapshot()
        snapshot.set_node(there)
        ledger = Ledger(snapshot)
        now = BEGIN.timestamp() + luck.random() * 300 * DAY
        ledger.advance(now)
        ledger.put(identified(replace(once, recurrence=recurrence)))
        for occurrence in recurrence.shown(now)[:2]:
            begins = max(occurrence.start - recurrence.lead, now)
            if begins > now:
                assert phase_at(ledger, once.ref, (now + begins) / 2) is Phase.PENDING
                assert phase_at(ledger, once.ref, begins - 1) is Phase.PENDING
            assert phase_at(ledger, once.ref, begins) is Phase.ACTIVE
            assert phase_at(ledger, once.ref, occurrence.end - 1) is Phase.ACTIVE
            now = occurrence.end


def phase_at(ledger: Ledger, ref: Ref, now: float) -> Phase | None:
    ledger.advance(now)
    return ledger.phase(ref)


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
