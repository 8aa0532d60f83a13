"""Parses and shows the ``schedule`` of a reservation."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from reserver.base.schedule import Occurrence
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import schedules
from reserver.k8s.objects.limits import MOST_LEAD_S, MOST_OCCURRENCES, MOST_SKIPPED, check_count
from reserver.k8s.objects.schedules import ScheduleFields
from reserver.k8s.objects.times import parse_duration, parse_moment, show_in
from reserver.reservations.recurrence import Recurrence, counted


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


def show(occurrences: Iterable[Occurrence], recurrence: Recurrence) -> list[OccurrenceFields]:
    """Return occurrences for a status, in the time zone of the recurrence."""
    zone = recurrence.schedule.zone
    return [
        OccurrenceFields(show_in(start, zone), show_in(end, zone)) for start, end in occurrences
    ]


def read(fields: RecurrenceFields, starts_at: float | None) -> Recurrence:
    """Return the recurrence of a schedule.

    Args:
        fields: the schedule as written.
        starts_at: the earliest start of an occurrence, in unix seconds; None for any.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its name.
    """
    schedule = schedules.read(fields)
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
