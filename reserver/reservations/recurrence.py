"""Recurrence: the occurrences of a recurring reservation, which do not overlap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, takewhile
from typing import NamedTuple

from reserver.base.schedule import Occurrence, Schedule

SHOWN = 3
"""Number of coming occurrences that are shown."""

FARTHEST_S = 50 * 366 * 86_400.0
"""Farthest start of an occurrence that is searched with `count` or `skip`, in seconds ahead: a
leap day on a Sunday comes every 28 years, and a hundred of these took 0.1 s to find."""

_OF_OCCURRENCE = "+"
"""The separator between the digest of the spec and the start of an occurrence."""


class Recurrence(NamedTuple):
    """The recurrence of a reservation; all times in unix seconds.

    Attributes:
        schedule: the schedule of its occurrences.
        first: the earliest start of an occurrence; None for no limit.
        lead: seconds before its start from which an occurrence holds, unless the former one lasts
            longer.
        skipped: the starts of skipped occurrences.
        is_suspended: nothing is held while occurrences pass.
    """

    schedule: Schedule
    first: float | None = None
    lead: float = 0.0
    skipped: tuple[float, ...] = ()
    is_suspended: bool = False

    def at(self, now: float) -> Occurrence | None:
        """Return the occurrence at `now` (unix seconds), or the next; None without one."""
        return next(iter(self.shown(now)), None)

    def occurrences(self, now: float) -> Iterator[Occurrence]:
        """Return the occurrence at `now` (unix seconds), and all later ones."""
        since = now if self.first is None else max(now, self.first)
        found = self.schedule.occurrences(since)
        return self._kept(found, since) if self.skipped or self.first is not None else found

    def _kept(self, found: Iterator[Occurrence], since: float) -> Iterator[Occurrence]:
        """Yield the occurrences that are neither skipped nor before `first`."""
        for each in found:
            if each.start in self.skipped:
                if each.start > since + FARTHEST_S:
                    return
            elif self.first is None or each.start >= self.first:
                yield each

    def shown(self, since: float) -> tuple[Occurrence, ...]:
        """Return the first `SHOWN` occurrences from a moment on (unix seconds)."""
        return _shown(self, since)

    @property
    def ends_at(self) -> float | None:
        """The latest end of the last occurrence, unix seconds; None for never."""
        until = self.schedule.until
        return None if until is None else until + self.schedule.duration


@lru_cache(64)  # Called twice for each write, with the same moment.
def _shown(recurrence: Recurrence, since: float) -> tuple[Occurrence, ...]:
    return tuple(islice(recurrence.occurrences(since), SHOWN))


def counted(schedule: Schedule, first: float, count: int) -> Schedule:
    """Return a schedule that ends after `count` occurrences from `first` (unix seconds) on.

    A skipped occurrence counts too, as in iCalendar (RFC 5545, ``EXDATE``). Occurrences beyond
    `FARTHEST_S` never come.
    """
    return schedule._replace(until=_last_start(schedule, first, count))


@lru_cache(4096)
def _last_start(schedule: Schedule, first: float, count: int) -> float:
    starts = (each.start for each in schedule.occurrences(first) if each.start >= first)
    near = takewhile(lambda start: start <= first + FARTHEST_S, starts)
    return max(islice(near, count), default=first)


def occurrence_digest(digest: str, start: float) -> str:
    """Return the digest of an occurrence (`start` in unix seconds) of a reservation."""
    return f"{series_digest(digest)}{_OF_OCCURRENCE}{start:.0f}"


def series_digest(digest: str) -> str:
    """Return a digest without the start of an occurrence."""
    return digest.partition(_OF_OCCURRENCE)[0]
