"""Parses the lifetime of a reservation: a start and an expiry, or a schedule."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from reserver.base.schedule import Occurrence
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.limits import MOST_LEAD_S, MOST_OCCURRENCES, MOST_SKIPPED, check_count
from reserver.k8s.objects.schedules import ScheduleFields, read_schedule
from reserver.k8s.objects.times import parse_duration, parse_moment, show_in
from reserver.reservations.recurrence import Recurrence, counted

DEFAULT_TTL_S = 24 * 3600.0
"""Default ttl of a reservation, in seconds."""

MAX_TTL_S = 100 * 365 * DEFAULT_TTL_S

MOST_DRIFT_S = 30
"""Two readers of a ttl may compute expiries this many seconds apart (docs/adr/0001)."""


class RecurrenceFields(ScheduleFields, kw_only=True):
    """The written form of a schedule; `reserver.reservations.recurrence` defines its meaning."""

    count: int | None = None
    lead: str = "0"
    suspend: bool = False
    # The starts of occurrences to leave out, RFC 3339.
    skip: list[str] = msgspec.field(default_factory=list)


class OccurrenceFields(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """An occurrence in a status, in the time zone of its schedule."""

    starts_at: str
    ends_at: str

    @property
    def start(self) -> float:
        """The start in unix seconds; 0 if the occurrence cannot be parsed."""
        return self.moments.start

    @property
    def moments(self) -> Occurrence:
        """The start and end in unix seconds; both 0 if either cannot be parsed."""
        with suppress(InvalidInput):  # Not written by Reserver.
            return Occurrence(parse_moment(self.starts_at), parse_moment(self.ends_at))
        return Occurrence(0.0, 0.0)


class LifetimeFields(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The fields of a spec for its lifetime."""

    starts_at: str | None = None
    expires_at: str | None = None
    ttl: str | int | None = None
    schedule: RecurrenceFields | None = None


class Lifetime(NamedTuple):
    """The lifetime of a reservation.

    Attributes:
        starts_at: unix seconds; None to begin at once, or with a recurrence.
        expires_at: unix seconds; None for never, or with a recurrence.
        recurrence: the schedule of its occurrences; None without one.
        drift: the most seconds by which another Reserver's computed expiry may differ: it may see
            the entry a moment later, or start after the first Reserver has stopped.
    """

    starts_at: float | None = None
    expires_at: float | None = None
    recurrence: Recurrence | None = None
    drift: int = 0


def read(spec: LifetimeFields, seen_at: float) -> Lifetime:
    """Return the lifetime of a reservation.

    Args:
        spec: the fields as written.
        seen_at: start of a ``ttl``, in unix seconds.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its path.
    """
    starts_at = _moment(spec.starts_at, "startsAt")
    if spec.schedule is not None:
        return Lifetime(recurrence=_recurrence(spec, spec.schedule, starts_at))
    expires_at = _expiry(spec, seen_at)
    if starts_at is not None and expires_at is not None and starts_at >= expires_at:
        raise InvalidInput("startsAt", "is not before expiresAt", "write a start before expiresAt")
    return Lifetime(starts_at, expires_at, drift=_drift(spec))


def needs_stamp(document: Any) -> bool:  # noqa: ANN401 - whatever YAML can hold
    """Return whether a mapping has a ttl, explicit or by default, but no ``expiresAt``."""
    if not isinstance(document, dict) or document.get("expiresAt") is not None:
        return False
    return str(document.get("ttl")) != "0" and document.get("schedule") is None


def _recurrence(
    spec: LifetimeFields, schedule: RecurrenceFields, starts_at: float | None
) -> Recurrence:
    if spec.expires_at is not None:
        remedy = "write schedule.until: no occurrence starts later"
        raise InvalidInput("expiresAt", "cannot be set together with schedule", remedy)
    if spec.ttl is not None and str(spec.ttl) != "0":
        remedy = "remove it: schedule.duration is the length of an occurrence"
        raise InvalidInput("ttl", "cannot be set together with schedule", remedy)
    with under("schedule"):
        return _read_recurrence(schedule, starts_at)


def _drift(spec: LifetimeFields) -> int:
    if spec.ttl is None:
        return 0 if spec.expires_at is not None else MOST_DRIFT_S
    try:
        ttl = parse_duration(str(spec.ttl))
    except InvalidInput:
        return 0  # expiresAt is set, and takes precedence over the invalid ttl.
    return min(MOST_DRIFT_S, max(1, int(ttl / 2))) if ttl else 0


def _moment(text: str | None, path: str) -> float | None:
    if text is None:
        return None
    with under(path):
        return parse_moment(text)


def _expiry(spec: LifetimeFields, seen_at: float) -> float | None:
    if spec.expires_at is not None:
        return _moment(spec.expires_at, "expiresAt")
    if spec.ttl is None:
        return float(int(seen_at + DEFAULT_TTL_S))
    with under("ttl"):
        ttl = parse_duration(str(spec.ttl))
    if ttl > MAX_TTL_S:
        raise InvalidInput("ttl", "is more than a hundred years", "write 0 to hold for ever")
    # Whole seconds, because `entry_edits.complete` writes the expiry so.
    return float(int(seen_at + ttl)) if ttl else None


def _read_recurrence(fields: RecurrenceFields, starts_at: float | None) -> Recurrence:
    """Return the recurrence of a schedule.

    Args:
        fields: the schedule as written.
        starts_at: the earliest start of an occurrence, in unix seconds; None for any.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its name.
    """
    schedule = read_schedule(fields)
    if fields.count is not None:
        schedule = counted(schedule, *_counted_from(fields, starts_at))
    check_count(fields.skip, "skip", MOST_SKIPPED)
    return Recurrence(
        schedule=schedule,
        first=starts_at,
        lead=_lead(fields.lead),
        skipped=tuple(sorted({_skipped(n, text) for n, text in enumerate(fields.skip)})),
        is_suspended=fields.suspend,
    )


def _counted_from(fields: RecurrenceFields, starts_at: float | None) -> tuple[float, int]:
    count = fields.count or 0
    if not 1 <= count <= MOST_OCCURRENCES:
        problem = f"{shorten(str(fields.count))} is out of range"
        raise InvalidInput("count", problem, f"write 1 to {MOST_OCCURRENCES}, or until")
    if fields.until is not None:
        raise InvalidInput("count", "cannot be set together with until", "write one of them")
    if starts_at is None:
        remedy = "write startsAt, from which occurrences are counted"
        raise InvalidInput("count", "needs a start", remedy)
    return starts_at, count


def _lead(text: str) -> float:
    with under("lead"):
        lead = parse_duration(text)
        if lead > MOST_LEAD_S:
            raise InvalidInput("", f"{text} is too long", f"write {MOST_LEAD_S // 3600}h at most")
    return lead


def _skipped(index: int, text: str) -> float:
    with under(f"skip[{index}]"):
        return parse_moment(text)


def show_occurrences(
    occurrences: Iterable[Occurrence], recurrence: Recurrence
) -> list[OccurrenceFields]:
    """Return occurrences for a status, in the time zone of the recurrence."""
    zone = recurrence.schedule.zone
    return [
        OccurrenceFields(show_in(start, zone), show_in(end, zone)) for start, end in occurrences
    ]
