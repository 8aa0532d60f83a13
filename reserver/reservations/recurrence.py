"""Recurrence: a recurring reservation, as occurrences which do not overlap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, takewhile
from typing import NamedTuple

from reserver.base.schedule import Occurrence, Schedule

SHOWN = 3
"""So many of the next occurrences are shown to people."""

FARTHEST_S = 50 * 366 * 86_400.0
"""Further ahead nobody looks for one of many occurrences, in seconds: a leap day on a Sunday comes
every 28 years, and a hundred of them took 0.1 s to find."""

_OF_OCCURRENCE = "+"
"""Between the digest of what is written and the start of an occurrence."""


class Recurrence(NamedTuple):
    """When a reservation recurs; all times in unix seconds.

    Attributes:
        schedule: its occurrences.
        first: no occurrence starts earlier; None for any time.
        lead: so many seconds before its start an occurrence begins to hold, unless the one before
            lasts until then.
        skipped: the starts of occurrences that are left out.
        is_suspended: nothing is held; occurrences go by.
    """

    schedule: Schedule
    first: float | None = None
    lead: float = 0.0
    skipped: tuple[float, ...] = ()
    is_suspended: bool = False

    def at(self, now: float) -> Occurrence | None:
        """Return the occurrence under way at `now` (unix seconds), or the next; None if none."""
        return next(iter(self.shown(now)), None)

    def occurrences(self, now: float) -> Iterator[Occurrence]:
        """Return the occurrence under way at `now` (unix seconds), and all later ones."""
        since = now if self.first is None else max(now, self.first)
        found = self.schedule.occurrences(since)
        return self._kept(found, since) if self.skipped or self.first is not None else found

    def _kept(self, found: Iterator[Occurrence], since: float) -> Iterator[Occurrence]:
        """Yield the occurrences that are not left out and do not start too early."""
        for each in found:
            if each.start in self.skipped:
                if each.start > since + FARTHEST_S:
                    return
            elif self.first is None or each.start >= self.first:
                yield each

    def shown(self, since: float) -> tuple[Occurrence, ...]:
        """Return the occurrences to show to people, from a moment on (unix seconds)."""
        return _shown(self, since)

    @property
    def ends_at(self) -> float | None:
        """When the last occurrence is over at the latest, unix seconds; None for never."""
        until = self.schedule.until
        return None if until is None else until + self.schedule.duration


@lru_cache(64)  # They are asked for twice for what is written, at the same moment.
def _shown(recurrence: Recurrence, since: float) -> tuple[Occurrence, ...]:
    return tuple(islice(recurrence.occurrences(since), SHOWN))


def counted(schedule: Schedule, first: float, count: int) -> Schedule:
    """Return a schedule that ends with so many occurrences, the first not before a moment.

    One that is left out counts, too, as in iCalendar (RFC 5545, ``EXDATE``). Those that are further
    ahead than anybody looks (`FARTHEST_S`) do not come.
    """
    return schedule._replace(until=_last_start(schedule, first, count))


@lru_cache(4096)
def _last_start(schedule: Schedule, first: float, count: int) -> float:
    starts = (each.start for each in schedule.occurrences(first) if each.start >= first)
    near = takewhile(lambda start: start <= first + FARTHEST_S, starts)
    return max(islice(near, count), default=first)


def occurrence_digest(digest: str, start: float) -> str:
    """Return the digest of an occurrence (its start in unix seconds) of what has a digest."""
    return f"{series_digest(digest)}{_OF_OCCURRENCE}{start:.0f}"


def series_digest(digest: str) -> str:
    """Return the digest of what is written, without the occurrence that it may tell."""
    return digest.partition(_OF_OCCURRENCE)[0]
