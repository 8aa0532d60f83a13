"""Schedules: a span of time that comes again, by cron in a time zone.

A fixed time that a change of clocks leaves out is moved to the end of the gap; one that comes twice
counts once, the first time. A schedule whose minute or hour begins with ``*`` follows real time
instead. cron of Debian has both rules (crontab(5), "Daylight Saving Time").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

MOST_CRON = 100
"""Characters of a cron expression."""

_FIELDS = 5
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
        remedy: what to do.
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
        starts = self._starts(now - self.duration)
        start = next(starts, None)
        while start is not None and (self.until is None or start <= self.until):
            following = next(starts, None)
            end = start + self.duration
            occurrence = Occurrence(start, end if following is None else min(end, following))
            if occurrence.end > now:
                yield occurrence
            start = following

    def _starts(self, after: float) -> Iterator[float]:
        """Yield the starts later than a moment, each once."""
        zone = _zone(self.zone)
        latest = after
        moment = datetime.fromtimestamp(after, zone)
        if moment.year > _LAST_YEAR:
            return
        for start in CronSim(self.cron, moment):
            at = start.timestamp()
            if at > latest:  # cron counts by the clock on the wall, which may show an hour twice.
                latest = at
                yield at
            if start.year > _LAST_YEAR:
                return


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


def _check(cron: str, duration: float) -> None:
    """Refuse an expression that is not cron, never happens, or overlaps with itself."""
    remedy = "write minute, hour, day of month, month and day of week: 0 22 * * MON-FRI"
    if len(cron) > MOST_CRON or not cron.isascii() or len(cron.split()) != _FIELDS:
        raise ScheduleError("cron", "does not have five fields", remedy)
    try:
        found = _some_starts(cron)
    except (CronSimError, AssertionError, ValueError) as exc:
        raise ScheduleError("cron", f"cannot be read: {exc}".rstrip(": "), remedy) from exc
    if not found:
        raise ScheduleError("cron", "never happens", "write a day that some month has")
    for before, after in pairwise(found):
        if after - before < duration:
            first, second = (
                f"{datetime.fromtimestamp(at, UTC):%a %H:%M}" for at in (before, after)
            )
            problem = f"the occurrence of {first} lasts into the next one, of {second}"
            raise ScheduleError("duration", problem, f"write {(after - before) / 60:.0f}m at most")


def _some_starts(cron: str) -> list[float]:
    """Return the first starts from a fixed moment on, in unix seconds: enough to compare."""
    starts = (start.timestamp() for start in islice(CronSim(cron, _EPOCH), _CHECKED))
    first = next(starts, None)
    if first is None:
        return []
    until = first + _CHECKED_DAYS * 86_400
    return [first, *takewhile(lambda at: at < until, starts)]
