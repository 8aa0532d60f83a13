"""Parts of a spec as values of the client: whole nodes and schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Nodes:
    """Whole nodes.

    Attributes:
        count: the number of nodes.
        selector: the required labels of each node.
    """

    count: int
    selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringSchedule:
    """The schedule of a recurring reservation.

    Attributes:
        cron: minute, hour, day of the month, month and day of the week.
        duration: the length of an occurrence.
        time_zone: the IANA time zone of `cron`; empty for UTC.
        until: the latest start of an occurrence, with an offset from UTC.
        count: instead of `until`: the number of occurrences, from `Spec.starts_at` on.
        lead: the time by which the hold begins before the start of an occurrence.
        suspend: whether occurrences pass without a hold.
        skip: the starts of occurrences to leave out.
    """

    cron: str
    duration: timedelta
    time_zone: str = ""
    until: datetime | None = None
    count: int | None = None
    lead: timedelta | None = None
    suspend: bool = False
    skip: Sequence[datetime] = ()


class OccurrenceInfo(NamedTuple):
    """The start and end of an occurrence, which begins to hold `lead` before its start."""

    starts_at: datetime
    ends_at: datetime
