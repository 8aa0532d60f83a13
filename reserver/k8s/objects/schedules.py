"""Schedules as users write them; apart from times, because commands start without msgspec."""

from __future__ import annotations

import msgspec

from reserver.base import schedule
from reserver.base.schedule import Schedule, ScheduleError
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.times import parse_duration, parse_moment

_LEAST_OCCURRENCE_S = 60.0
"""Least seconds of an occurrence: cron counts in minutes."""


class ScheduleFields(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A schedule as users write it; see `reserver.base.schedule` for the fields."""

    cron: str
    duration: str
    time_zone: str = "UTC"
    until: str | None = None


def read_schedule(fields: ScheduleFields) -> Schedule:
    """Return the schedule of these fields.

    Raises:
        InvalidInput: a field is not valid; the error carries its name.
    """
    with under("duration"):
        duration = parse_duration(fields.duration)
        if duration < _LEAST_OCCURRENCE_S:
            raise InvalidInput("", f"{fields.duration} is too short", "write 1m or more")
    until = None
    if fields.until is not None:
        with under("until"):
            until = parse_moment(fields.until)
    try:
        return schedule.checked(Schedule(fields.cron, duration, fields.time_zone, until))
    except ScheduleError as exc:
        raise InvalidInput(exc.field, str(exc), exc.remedy) from exc
