"""Schedules: a span of time that comes again, by cron in a time zone.

A fixed time that a change of clocks leaves out is moved to the end of the gap; one that comes twice
counts once, the first time. A schedule whose minute or hour begins with ``*`` follows real time
instead. cron of Debian has both rules (crontab(5), "Daylight Saving Time").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
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
    """A cron expression, parsed.

    Attributes:
        days: knows the days.
        times: of each day.
        is_fixed: neither its minute nor its hour begins with ``*``.
        least_gap: the seconds between two of its times, whatever the days.
    """

    days: CronSim
    times: tuple[time, ...]
    is_fixed: bool
    least_gap: float


@lru_cache(4096)
def _parsed(cron: str) -> _Cron:
    """Return an expression as `cronsim` reads it; raises what that does."""
    days, words = CronSim(cron, _EPOCH), cron.split()
    times = sorted(time(hour, minute) for hour in days.hours for minute in days.minutes)
    is_fixed = not (words[0].startswith("*") or words[1].startswith("*"))
    seconds = [each.hour * 3600 + each.minute * 60 for each in times]
    gaps = (after - before for before, after in pairwise([*seconds, seconds[0] + _DAY_S]))
    return _Cron(days, tuple(times), is_fixed, min(gaps))


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
    day = today if before.utcoffset() == here.utcoffset() else before.date()
    last = min(day.year + _YEARS, _LAST_YEAR)
    while day.year <= last:
        if day.month not in cron.days.months:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            continue
        if cron.days.match_day(day):
            begin = bisect_left(cron.times, at_least) if day == today else 0
            for each in cron.times[-1:] if day < today else islice(cron.times, begin, None):
                yield _moment(day, each, zone)
            last = min(day.year + _YEARS, _LAST_YEAR)
        day += timedelta(days=1)


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


@lru_cache(4096)  # Many keep the same hours.
def _check(cron: str, duration: float) -> None:
    """Refuse an expression that is not cron, never happens, or overlaps with itself."""
    remedy = "write minute, hour, day of month, month and day of week: 0 22 * * MON-FRI"
    if len(cron) > MOST_CRON or not cron.isascii() or len(cron.split()) != _FIELDS:
        raise ScheduleError("cron", "does not have five fields", remedy)
    try:
        parsed = _parsed(cron)
    except (CronSimError, AssertionError, ValueError) as exc:
        raise ScheduleError("cron", f"cannot be read: {exc}".rstrip(": "), remedy) from exc
    found = _some_starts(cron, 1 if duration <= parsed.least_gap else _CHECKED)
    if not found:
        raise ScheduleError("cron", "never happens", "write a day that some month has")
    for before, after in pairwise(found):
        if after - before < duration:
            first, second = (
                f"{datetime.fromtimestamp(at, UTC):%a %H:%M}" for at in (before, after)
            )
            problem = f"the occurrence of {first} lasts into the next one, of {second}"
            raise ScheduleError("duration", problem, f"write {(after - before) / 60:.0f}m at most")


def _some_starts(cron: str, most: int) -> list[float]:
    """Return the first starts from a fixed moment on, in unix seconds: enough to compare."""
    starts = islice(Schedule(cron, 0.0).starts(_EPOCH.timestamp()), most)
    first = next(starts, None)
    if first is None:
        return []
    until = first + _CHECKED_DAYS * _DAY_S
    return [first, *takewhile(lambda at: at < until, starts)]
