"""Schedules: a recurring span of time, given by a cron expression in a time zone.

A fixed time that a change of clocks skips is moved to the end of the gap; a fixed time that occurs
twice counts once, the first time. A schedule whose minute or hour begins with ``*`` follows real
time instead. cron of Debian has both rules (crontab(5), "Daylight Saving Time").
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import chain, islice, pairwise, takewhile
from math import isnan, nan
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from reserver.base import cron
from reserver.base.cron import EPOCH, LAST_YEAR, Cron

MOST_CRON = 100
"""Most characters of a cron expression."""

_FIELDS = 5
_DAY_S = 86_400.0
_FIRST_DAY = date(1970, 1, 1).toordinal()
_EARLIEST = datetime(2, 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()

_NEAR = 6
"""Days cached for each combination of day fields: callers ask for the next few occurrences."""

_CHECKED = 64
"""Occurrences in a row whose gaps are compared with the duration, from a fixed day on."""

_CHECKED_DAYS = 5 * 366
"""Days within which these occurrences lie: a leap day on the fifth Tuesday comes every 28 years,
and finding 64 of them took 0.1 s. Any pod may have an annotation with such a schedule."""


class ScheduleError(ValueError):
    """The text is not a valid schedule.

    Attributes:
        field: the field of `Schedule` as users write it: ``cron``, ``duration`` or ``timeZone``.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        """Refuse a field of a schedule."""
        super().__init__(problem)
        self.field = field
        self.remedy = remedy


class Occurrence(NamedTuple):
    """A span of time in unix seconds, without its end."""

    start: float
    end: float


class Schedule(NamedTuple):
    """A recurring span of time.

    An occurrence that would last into the next one ends where the next begins.

    Attributes:
        cron: minute, hour, day of the month, month and day of the week.
        duration: length of an occurrence, in seconds.
        zone: an IANA time zone.
        until: the latest start of an occurrence, unix seconds; None for no end.
    """

    cron: str
    duration: float
    zone: str = "UTC"
    until: float | None = None

    def occurrence(self, now: float) -> Occurrence | None:
        """Return the occurrence under way at `now` (unix seconds), or the next; None if none."""
        return next(self.occurrences(now), None)

    def occurrences(self, now: float) -> Iterator[Occurrence]:
        """Yield the occurrence under way at `now` (unix seconds), and all later ones.

        The occurrences do not depend on `now`.
        """
        starts = self.starts(now - self.duration)
        start = next(starts, None)
        while start is not None and (self.until is None or start <= self.until):
            following = next(starts, None)
            end = start + self.duration
            occurrence = Occurrence(start, end if following is None else min(end, following))
            if occurrence.end > now:
                yield occurrence
            start = following

    def starts(self, after: float) -> Iterator[float]:
        """Return the starts later than `after`, each once, in unix seconds; none of the year 1."""
        after = max(after, _EARLIEST)  # The day before is looked at, and has to have a date.
        zone, read = _zone(self.zone), cron.parse(self.cron)
        if read.is_fixed or self.zone == "UTC":
            return _fixed(read, after, zone)
        return _by_real_time(self.cron, after, zone)


def _by_real_time(text: str, after: float, zone: ZoneInfo) -> Iterator[float]:
    """Yield the starts later than `after`, each once, for a schedule that follows real time."""
    latest = after
    if after >= _LATEST:
        return
    for start in CronSim(text, datetime.fromtimestamp(after, zone)):
        at = start.timestamp()
        if at > latest:  # cron counts by local time, which may show an hour twice.
            latest = at
            yield at
        if start.year > LAST_YEAR:
            return


def _fixed(read: Cron, after: float, zone: ZoneInfo) -> Iterator[float]:
    """Yield the starts later than `after`, each once, for a schedule of fixed times.

    Same result as `cronsim`, but day by day: `cronsim` would take a second for ten thousand
    schedules at startup.
    """
    latest = after
    if after >= _LATEST:
        return
    near = _near(read.days, _FIRST_DAY + int(after // _DAY_S), zone)
    for day, midnight in chain(near, _later(read.days, near, zone)):
        is_even = not isnan(midnight)
        for minute in read.times(max(0, int(after - midnight) // 60) if is_even else 0):
            at = midnight + 60.0 * minute if is_even else _moment(day, minute, zone)
            if at > latest:  # All times that a gap skips have the same end of the gap.
                latest = at
                yield at


@lru_cache(1024)  # Many schedules share their days and differ in the time of day.
def _near(fields: str, today: int, zone: ZoneInfo) -> tuple[tuple[int, float], ...]:
    """Return the first days, with their midnights, that may have a start from a day of UTC on.

    A change of clocks may skip a whole day, whose times move to its end.
    """
    noon = datetime.combine(date.fromordinal(today), time(12), zone)
    before, after = (noon + timedelta(days=days) for days in (-3, 1))
    begin = today - 1 if before.utcoffset() == after.utcoffset() else today - 3
    days = islice(cron.days(fields, begin), _NEAR)
    return tuple((day, _midnight(day, zone)) for day in days)


def _later(
    fields: str, near: tuple[tuple[int, float], ...], zone: ZoneInfo
) -> Iterator[tuple[int, float]]:
    """Yield the days after the near ones, with their midnights."""
    if len(near) == _NEAR:
        for day in cron.days(fields, near[-1][0] + 1):
            yield day, _midnight(day, zone)


@lru_cache(16_384)  # Many schedules start on the same days.
def _midnight(day: int, zone: ZoneInfo) -> float:
    """Return the start of a day in unix seconds; NaN if the clocks change on this day."""
    begin = datetime.combine(date.fromordinal(day), time.min, zone)
    is_even = begin.utcoffset() == (begin + timedelta(days=1)).utcoffset()
    return begin.timestamp() if is_even else nan


def _moment(day: int, minute: int, zone: ZoneInfo) -> float:
    """Return the first unix second with this local time, or the end of the gap that skips it."""
    at = time(*divmod(minute, 60))
    wall = datetime.combine(date.fromordinal(day), at, zone)
    while True:
        moment = wall.timestamp()
        if datetime.fromtimestamp(moment, zone).replace(fold=0) == wall:
            return moment
        wall += timedelta(minutes=1)


def checked(schedule: Schedule) -> Schedule:
    """Return the schedule if it is valid.

    Raises:
        ScheduleError: the time zone, the expression or the duration is invalid.
    """
    _zone(schedule.zone)
    _check(schedule.cron, schedule.duration)
    return schedule


@lru_cache(1024)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        remedy = "write an IANA name such as Europe/Berlin, or UTC"
        raise ScheduleError("timeZone", "is not a time zone", remedy) from exc


@lru_cache(4096)  # Many schedules are equal.
def _check(text: str, duration: float) -> None:
    """Refuse an expression that is not cron, never occurs, or whose occurrences overlap."""
    remedy = "write minute, hour, day of month, month and day of week: 0 22 * * MON-FRI"
    if len(text) > MOST_CRON or not text.isascii() or len(text.split()) != _FIELDS:
        raise ScheduleError("cron", "does not have five fields", remedy)
    try:
        read = cron.parse(text)
    except (CronSimError, AssertionError, ValueError) as exc:
        raise ScheduleError("cron", f"cannot be read: {exc}".rstrip(": "), remedy) from exc
    is_apart = duration <= read.least_gap() or duration <= read.least_gap(_days_apart(read.days))
    if is_apart and _comes(read.days):
        return
    found = _some_starts(text)
    if not found:
        raise ScheduleError("cron", "never happens", "write a day that some month has")
    for before, after in pairwise(found):
        if after - before < duration:
            first, second = (
                f"{datetime.fromtimestamp(at, UTC):%a %H:%M}" for at in (before, after)
            )
            problem = f"the occurrence of {first} lasts into the next one, of {second}"
            raise ScheduleError("duration", problem, f"write {(after - before) / 60:.0f}m at most")


@lru_cache(4096)
def _comes(fields: str) -> bool:
    """Return whether the day fields match any day."""
    return next(cron.days(fields, EPOCH.toordinal()), None) is not None


@lru_cache(4096)
def _days_apart(fields: str) -> int:
    """Return the smallest gap between two matching days, in days."""
    begin = EPOCH.toordinal()
    soon = takewhile((begin + _CHECKED_DAYS).__gt__, cron.days(fields, begin))
    days = islice(soon, _CHECKED + 1)
    return min((after - before for before, after in pairwise(days)), default=1)


def _some_starts(text: str) -> list[float]:
    """Return the first starts from a fixed moment on, in unix seconds, to compare their gaps."""
    starts = islice(Schedule(text, 0.0).starts(EPOCH.timestamp()), _CHECKED)
    first = next(starts, None)
    if first is None:
        return []
    until = first + _CHECKED_DAYS * _DAY_S
    return [first, *takewhile(lambda at: at < until, starts)]
