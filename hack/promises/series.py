"""The occurrences of a recurring entry, by a cron library in the entry's time zone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from hack.promises.amounts import duration, moment

_FIELDS = frozenset(("cron", "duration", "timeZone", "lead", "until", "count", "skip", "suspend"))

_LEAST_S = 60.0
"""So long an occurrence lasts at least, in seconds."""

_EPOCH, _COMPARED = datetime(2024, 1, 1, tzinfo=UTC).timestamp(), 64
"""From here on so many occurrences are compared with the duration."""


class Occurrence(NamedTuple):
    """One span of time, unix seconds; the end is not part of it."""

    start: float
    end: float


class Series(NamedTuple):
    """The schedule of an occurrence; an edit of it makes another reservation.

    Attributes:
        cron: the starts of occurrences.
        duration: the length of an occurrence, in seconds.
        zone: the time zone of the starts.
        lead: seconds before a start from which the occurrence holds.
    """

    cron: str
    duration: float
    zone: str
    lead: float

    def starts(self, after: float) -> Iterator[float]:
        """Yield all starts later than a moment, unix seconds."""
        latest = after
        for start in CronSim(self.cron, datetime.fromtimestamp(after, ZoneInfo(self.zone))):
            at = start.timestamp()
            if at > latest:  # The clock on the wall may show an hour twice.
                latest = at
                yield at


class Course(NamedTuple):
    """The limits of a series; an edit of them does not change the current occurrence.

    Attributes:
        first: no occurrence starts earlier; unix seconds.
        until: no occurrence starts later; unix seconds.
        most: the number of occurrences; 0: unlimited.
        skipped: the starts of skipped occurrences.
        is_suspended: no occurrence holds.
    """

    first: float = 0.0
    until: float = math.inf
    most: int = 0
    skipped: frozenset[float] = frozenset()
    is_suspended: bool = False

    def occurrence(self, series: Series, now: float) -> Occurrence | None:
        """Return the occurrence under way at `now` (unix seconds), or the next; None if none."""
        last = self._last_start(series)
        since = max(now, self.first)
        for start, following in pairwise(series.starts(since - series.duration)):
            if start > last:
                return None
            end = min(start + series.duration, following)
            if end > since and start >= self.first and start not in self.skipped:
                return Occurrence(start, end)
        return None

    def _last_start(self, series: Series) -> float:
        if not self.most:
            return self.until
        starts = islice(series.starts(self.first - 1), self.most)
        return max(starts, default=self.first)


def read_schedule(written: Mapping[str, Any], starts_at: float) -> tuple[Series, Course]:
    """Read a ``schedule``.

    Raises:
        ValueError: a field is unknown or impossible; or KeyError, TypeError.
    """
    if set(written) - _FIELDS:
        raise ValueError("says what is not known")
    if "count" in written and ("until" in written or not starts_at):
        raise ValueError("ends twice, or counts from no beginning")
    series = Series(
        str(written["cron"]),
        duration(str(written["duration"])),
        str(written.get("timeZone") or "UTC"),
        duration(str(written.get("lead") or "0")),
    )
    _check(series)
    until = written.get("until")
    course = Course(
        first=starts_at,
        until=math.inf if until is None else moment(until),
        most=int(written.get("count") or 0),
        skipped=frozenset(map(moment, written.get("skip") or ())),
        is_suspended=written.get("suspend") is True,
    )
    return series, course


def _check(series: Series) -> None:
    """Refuse what cannot be read, never happens, or lasts into its next occurrence."""
    try:
        found = list(islice(series._replace(zone="UTC").starts(_EPOCH), _COMPARED))
    except CronSimError as exc:
        raise ValueError(f"{series.cron!r} is not cron") from exc
    ZoneInfo(series.zone)
    if series.duration < _LEAST_S:
        raise ValueError("is over before anybody could come")
    if not found or any(b - a < series.duration for a, b in pairwise(found)):
        raise ValueError("never happens, or lasts into the next one")
