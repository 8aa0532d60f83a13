"""Schedules as people say them: ``22:00 weekdays``."""

from __future__ import annotations

import re

from reserver.cli.failure import ExitStatus, Failed
from reserver.cluster.quantity import shorten

_FIELDS = 5
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SETS = {"daily": "*", "weekdays": "1-5", "weekends": "0,6"}
_FORMS = "write '22:00 weekdays', '8:30 mon,thu', '9:00 daily', or cron: '0 22 * * 1-5'"


def cron(flag: str, text: str) -> str:
    """Return the cron expression of a time of day with days, or of cron itself.

    Raises:
        Failed: it is neither.
    """
    words = text.split()
    if len(words) == _FIELDS:
        return " ".join(words)
    clock = _CLOCK.fullmatch(words[0]) if words else None
    days = _days(words[1:])
    if clock is None or days is None:
        raise Failed(ExitStatus.USAGE, f"{flag}: {shorten(text)!r} is not a schedule; {_FORMS}")
    hour, minute = map(int, clock.groups())
    return f"{minute} {hour} * * {days}"


def _days(words: list[str]) -> str | None:
    """Return the field of cron for days of the week; None if these are none."""
    said = ",".join(words).lower() or "daily"
    if said in _SETS:
        return _SETS[said]
    names = [name[:3] for name in said.split(",") if name]
    known = all(name in _DAYS for name in names)
    return ",".join(str(_DAYS.index(name)) for name in dict.fromkeys(names)) if known else None
