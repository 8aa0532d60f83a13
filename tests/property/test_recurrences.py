"""Ten thousand schedules: no occurrence twice, none lost, none early, all as announced."""

from __future__ import annotations

import os
import random
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from reserver.base.schedule import Occurrence, Schedule
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.recurrence import SHOWN, Recurrence, counted
from reserver.reservations.reservation import Ref
from tests.builders import node, reservation

IS_WIDE = os.environ.get("RESERVER_HYPOTHESIS") == "wide"
"""`make release-check` draws more, and others each time (`tests.drawing`)."""

SCHEDULES = 100_000 if IS_WIDE else 10_000
SEED = 75
"""Unless `--hypothesis-seed` gives another one."""

YEARS, PARTS = 10, 4
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
END, SKIPS, AHEAD = ("", "until", "count"), (0, 0, 1, 2), 8
"""The end of a recurrence, and the skipped part of its next occurrences."""


class Drawn(NamedTuple):
    """A recurrence at a fixed time, and its expected occurrences.

    Attributes:
        now: the time of the first look, in unix seconds.
        expected: the occurrence under way and the next ones, by a calendar and clocks alone.
        is_last: none comes after these.
    """

    recurrence: Recurrence
    now: float
    expected: tuple[Occurrence, ...]
    is_last: bool


@lru_cache
def calendar(days: str) -> list[date]:
    """Return the days of a schedule, for as long as anybody looks."""
    every = (date(2025, 12, 1) + timedelta(days=number) for number in range(110 * 366))
    return [day for day in every if DAYS[days](day)]


def shown_by_clocks(schedule: Schedule, at: time, days: str, since: float) -> list[Occurrence]:
    """Return the occurrence under way and the next ones, with no end of the schedule."""
    zone, known = ZoneInfo(schedule.zone), calendar(days)
    begin = bisect(known, datetime.fromtimestamp(since, zone).date() - timedelta(days=4))
    near = (datetime.combine(day, at) for day in known[begin : begin + 3 * AHEAD])
    starts = sorted({first_shown(each, zone) for each in near})
    ends = (min(start + schedule.duration, then) for start, then in pairwise(starts))
    found = (Occurrence(*each) for each in zip(starts, ends, strict=False))
    return [each for each in found if each.end > since][: 2 * AHEAD]


def drawn(luck: random.Random) -> Drawn:
    """Draw a recurrence, with or without a lead, an end, a beginning and skipped occurrences."""
    at, days = time(luck.randrange(24), luck.randrange(60)), luck.choice(list(DAYS))
    cron, duration = f"{at.minute} {at.hour} {days}", luck.choice((MINUTE, 8 * HOUR, 23 * HOUR))
    schedule = Schedule(cron, duration, luck.choice(ZONES))
    now = BEGIN.timestamp() + luck.random() * 300 * DAY
    end = luck.choice(END)
    first = now + luck.uniform(-2, 2) * DAY if end == "count" or luck.random() < 0.2 else None
    since = now if first is None else min(now, first)
    coming = shown_by_clocks(schedule, at, days, since)
    coming = [each for each in coming if first is None or each.start >= first]
    most = luck.randint(1, AHEAD - 1) if end else AHEAD
    if end == "until":
        schedule = schedule._replace(until=coming[most - 1].start + luck.choice((0, HOUR)))
        most = sum(each.start <= schedule.until for each in coming)  # type: ignore[operator]
    elif end == "count":
        schedule = counted(schedule, first or 0.0, most)
    skipped = tuple(each.start for each in luck.sample(coming[:SHOWN], luck.choice(SKIPS)))
    expected = [each for each in coming[:most] if each.start not in skipped and each.end > now]
    recurrence = Recurrence(
        schedule=schedule,
        first=first,
        lead=luck.choice((0.0, HOUR)),
        skipped=skipped,
        is_suspended=luck.random() < 0.1,
    )
    return Drawn(recurrence, now, tuple(expected[:SHOWN]), bool(end) and len(expected) <= SHOWN)


def passing(recurrence: Recurrence, now: float, until: float) -> Iterator[Occurrence]:
    """Yield the occurrences as the ledger comes to them: at the end of each the next one."""
    while (found := recurrence.at(now)) is not None and found.start < until:
        yield found
        now = found.end


@pytest.fixture
def luck(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(int(request.config.getoption("--hypothesis-seed") or SEED))


@pytest.mark.hypothesis
def test_each_occurrence_comes_once_in_its_turn_and_as_it_was_announced(
    luck: random.Random,
) -> None:
    seen = Counter[str]()
    for _ in range(SCHEDULES):
        it = drawn(luck)
        recurrence, now, expected = it.recurrence, it.now, it.expected
        seen.update(kinds(it))
        told = recurrence.shown(now)
        assert told == expected
        come = list(passing(recurrence, now, told[-1].start + 1 if told else inf))
        assert tuple(come) == told
        for before, after in pairwise(told):
            assert before.start < before.end <= after.start
        for occurrence in told[:1]:
            # Whoever looks at another moment of it sees the same.
            start, end = occurrence
            assert end > now
            for at in (start, (start + end) / 2, end - 1):
                assert recurrence.at(at) == occurrence
        if it.is_last:
            assert recurrence.at(told[-1].end if told else now) is None
    assert min(seen[each] for each in KINDS) > SCHEDULES / 50, seen


KINDS = ("lead", "skip", "suspend", "until", "count", "first", "the last ones", "none any more")


def kinds(it: Drawn) -> Iterator[str]:
    """Yield the special cases that a recurrence covers."""
    recurrence = it.recurrence
    is_counted = recurrence.schedule.until is not None and recurrence.first is not None
    found = {
        "lead": bool(recurrence.lead),
        "skip": bool(recurrence.skipped),
        "suspend": recurrence.is_suspended,
        "until": recurrence.schedule.until is not None and not is_counted,
        "count": is_counted,
        "first": recurrence.first is not None,
        "the last ones": it.is_last,
        "none any more": not it.expected,
    }
    return (name for name, is_so in found.items() if is_so)


@pytest.mark.hypothesis
def test_a_ledger_holds_each_occurrence_from_its_lead_to_its_end_and_nothing_between(
    luck: random.Random,
) -> None:
    once, there = reservation("r", cpu="2"), node("worker-1")
    for _ in range(SCHEDULES):
        it, snapshot = drawn(luck), Snapshot()
        snapshot.set_node(there)
        ledger, recurrence, now = Ledger(snapshot), it.recurrence, it.now
        ledger.advance(now)
        ledger.put(identified(replace(once, recurrence=recurrence)))
        holds = Phase.PENDING if recurrence.is_suspended else Phase.ACTIVE
        for occurrence in it.expected[:2]:
            begins = max(occurrence.start - recurrence.lead, now)
            if begins > now:
                assert phase_at(ledger, once.ref, (now + begins) / 2) is Phase.PENDING
                assert phase_at(ledger, once.ref, begins - 1) is Phase.PENDING
            assert phase_at(ledger, once.ref, begins) is holds
            assert phase_at(ledger, once.ref, occurrence.end - 1) is holds
            now = occurrence.end
        if it.is_last and len(it.expected) < SHOWN:
            assert phase_at(ledger, once.ref, now) is Phase.EXPIRED


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
