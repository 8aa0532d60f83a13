"""Parts of a spec as values of the client: whole nodes, and when a reservation recurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Nodes:
    """Whole nodes.

    Attributes:
        count: how many.
        selector: labels that each of them has to have.
    """

    count: int
    selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringSchedule:
    """When a reservation recurs.

    Attributes:
        cron: minute, hour, day of the month, month and day of the week.
        duration: how long an occurrence lasts.
        time_zone: the IANA time zone of `cron`; UTC if it is empty.
        until: no occurrence starts later. With an offset from UTC.
        count: instead of `until`: how many occurrences there are, from `Spec.starts_at` on.
        lead: so long before its start an occurrence begins to hold.
        suspend: nothing is held; occurrences go by.
        skip: the starts of occurrences that are left out.
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
    """One occurrence: when it starts and ends; it begins to hold `lead` before its start."""

    starts_at: datetime
    ends_at: datetime
