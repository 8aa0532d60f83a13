"""Schedules: a span of time that comes again, by cron in a time zone.

A fixed time that a change of clocks leaves out is moved to the end of the gap; one that comes twice
counts once, the first time. A schedule whose minute or hour begins with ``*`` follows real time
instead. cron of Debian has both rules (crontab(5), "Daylight Saving Time").
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from math import inf
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

MOST_CRON = 100
"""Characters of a cron expression."""

_FIELDS = 5
_DAY_S = 86_400.0
_YEARS = 50
"""What does not happen for so many years never does."""

_CHECKED = 64
"""So many occurrences in a row are compared with the duration."""

_CHECKED_DAYS = 5 * 366
"""They are of so many days: a leap day on the fifth Tuesday comes every 28 years, and to look for
64 of these took 0.1 s. Any pod may have an annotation with such a schedule."""

_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
"""From here on they are compared: the answer is the same whenever it is asked for."""

_LAST_YEAR = 9900
"""cron is not asked about years that the calendar of Python ends in."""


class ScheduleError(ValueError):
    """What is written is no schedule.

    Attributes:
        field: of `Schedule`, as it is written: ``cron``, ``duration`` or ``timeZone``.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        """Refuse a field."""
        super().__init__(problem)
        self.field = field
        self.remedy = remedy


class Occurrence(NamedTuple):
    """A span of time, in unix seconds; the end is not part of it."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """A span of time that comes again.

    An occurrence that would last into the next one ends where that begins.

    Attributes:
        cron: minute, hour, day of the month, month and day of the week.
        duration: how long an occurrence is, in seconds.
        zone: an IANA time zone.
        until: no occurrence starts later, unix seconds; None for no end.
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

        An occurrence does not depend on when it is asked for.
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
        """Yield the starts later than a moment, each once."""
        zone, latest = _zone(self.zone), after
        if datetime.fromtimestamp(after, zone).year > _LAST_YEAR:
            return
        cron = _parsed(self.cron)
        is_fixed = cron.is_fixed or self.zone == "UTC"
        for at in _fixed(cron, zone, after) if is_fixed else _running(self.cron, zone, after):
            if at > latest:  # cron counts by the clock on the wall, which may show an hour twice.
                latest = at
                yield at


class _Cron(NamedTuple):
    """A cron expression, parsed. As small as can be: ten thousand are kept.

    Attributes:
        days: its last three fields, which say the days.
        hours: of each day.
        minutes: of each of these hours.
        is_fixed: neither its minute nor its hour begins with ``*``.
    """

    days: str
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    is_fixed: bool

    def times(self, since: time) -> Iterator[time]:
        """Yield the times of a day from one on."""
        for hour in self.hours:
            for minute in self.minutes if hour >= since.hour else ():
                if hour > since.hour or minute >= since.minute:
                    yield time(hour, minute)

    @property
    def last(self) -> time:
        """The last of the times of a day."""
        return time(self.hours[-1], self.minutes[-1])

    def least_gap(self, days: int = 1) -> float:
        """Return the least seconds between two starts whose days are so many apart at least."""
        in_hour = (after - before for before, after in pairwise(self.minutes))
        span = self.minutes[-1] - self.minutes[0]
        hours = pairwise((*self.hours, self.hours[0] + 24 * days))
        return 60.0 * min(*in_hour, *((after - before) * 60 - span for before, after in hours), inf)


@lru_cache(16_384)
def _parsed(cron: str) -> _Cron:
    """Return an expression as `cronsim` reads it; raises what that does."""
    parsed, words = CronSim(cron, _EPOCH), cron.split()
    is_fixed = not (words[0].startswith("*") or words[1].startswith("*"))
    hours, minutes = tuple(sorted(parsed.hours)), tuple(sorted(parsed.minutes))
    return _Cron(" ".join(words[2:]), hours, minutes, is_fixed)


def _running(cron: str, zone: ZoneInfo, after: float) -> Iterator[float]:
    """Yield the starts of a schedule that follows real time."""
    for start in CronSim(cron, datetime.fromtimestamp(after, zone)):
        yield start.timestamp()
        if start.year > _LAST_YEAR:
            return


def _fixed(cron: _Cron, zone: ZoneInfo, after: float) -> Iterator[float]:
    """Yield the starts of a schedule of fixed times, some of them before the moment.

    As `cronsim` does, but day by day: a start with ten thousand schedules has no second for it.
    """
    here = datetime.fromtimestamp(after, zone)
    today, at_least = here.date(), time(here.hour, here.minute)
    # A change of clocks may leave out a whole day, whose times come at its end.
    before = here - timedelta(days=2)
    begin = today if before.utcoffset() == here.utcoffset() else before.date()
    for day in _days(cron.days, begin):
        since = at_least if day == today else time.min
        for each in (cron.last,) if day < today else cron.times(since):
            yield _moment(day, each, zone)


def _days(fields: str, since: date) -> Iterator[date]:
    """Yield the days that the last three fields of an expression say, until there is none."""
    months = sorted(_rule(fields).months)
    year, last = since.year, min(since.year + _YEARS, _LAST_YEAR)
    while year <= last:
        for month in months:
            days = _days_of(fields, month, *monthrange(year, month))
            if (year, month) <= (since.year, since.month):
                days = days >> since.day << since.day if month == since.month else 0
            while days:
                first = days & -days
                yield date(year, month, first.bit_length() - 1)
                days ^= first
                last = min(year + _YEARS, _LAST_YEAR)
        year += 1


@lru_cache(16_384)  # Many keep the same days, each at a time of its own.
def _days_of(fields: str, month: int, weekday: int, length: int) -> int:
    """Return the days of a month as bits: the first day is bit 1.

    Years do not matter: the month begins on a day of the week (0 is Monday), and has so many days.
    Within 28 years each month has all of these.
    """
    like = (weekday, length)
    year = next(y for y in range(_EPOCH.year, _EPOCH.year + 28) if monthrange(y, month) == like)
    days = (date(year, month, day) for day in range(1, length + 1))
    cron = _rule(fields)
    return sum(1 << day.day for day in days if cron.match_day(day))


@lru_cache(4096)
def _rule(fields: str) -> CronSim:
    return CronSim(f"0 0 {fields}", _EPOCH)


def _moment(day: date, at: time, zone: ZoneInfo) -> float:
    """Return when a clock shows a time first, or the end of the gap that it leaves out."""
    wall = datetime.combine(day, at, zone)
    while True:
        moment = wall.timestamp()
        if datetime.fromtimestamp(moment, zone).replace(fold=0) == wall:
            return moment
        wall += timedelta(minutes=1)


def checked(schedule: Schedule) -> Schedule:
    """Return a schedule that can be kept.

    Raises:
        ScheduleError: it cannot.
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


@lru_cache(16_384)  # Many keep the same hours.
def _check(cron: str, duration: float) -> None:
    """Refuse an expression that is not cron, never happens, or overlaps with itself."""
    remedy = "write minute, hour, day of month, month and day of week: 0 22 * * MON-FRI"
    if len(cron) > MOST_CRON or not cron.isascii() or len(cron.split()) != _FIELDS:
        raise ScheduleError("cron", "does not have five fields", remedy)
    try:
        parsed = _parsed(cron)
    except (CronSimError, AssertionError, ValueError) as exc:
        raise ScheduleError("cron", f"cannot be read: {exc}".rstrip(": "), remedy) from exc
    is_apart = duration <= parsed.least_gap() or duration <= parsed.least_gap(
        _days_apart(parsed.days)
    )
    if is_apart and _comes(parsed.days):
        return
    found = _some_starts(cron)
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
    """Return whether an expression has any day."""
    return next(_days(fields, _EPOCH.date()), None) is not None


@lru_cache(4096)
def _days_apart(fields: str) -> int:
    """Return how many days the days of an expression are apart at least."""
    begin = _EPOCH.date()
    until = begin + timedelta(days=_CHECKED_DAYS)
    days = islice(takewhile(until.__gt__, _days(fields, begin)), _CHECKED + 1)
    return min(((after - before).days for before, after in pairwise(days)), default=1)


def _some_starts(cron: str) -> list[float]:
    """Return the first starts from a fixed moment on, in unix seconds: enough to compare."""
    starts = islice(Schedule(cron, 0.0).starts(_EPOCH.timestamp()), _CHECKED)
    first = next(starts, None)
    if first is None:
        return []
    until = first + _CHECKED_DAYS * _DAY_S
    return [first, *takewhile(lambda at: at < until, starts)]
