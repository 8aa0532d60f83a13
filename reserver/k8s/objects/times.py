"""Times and durations as users write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

_LATEST = 253_402_300_799
"""The last second of the year 9999; a larger number must be milliseconds."""

_EARLIEST = -62_135_596_800
"""The first second of the year 1."""

_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:h|ms|m|s))+|0")
_DURATION_PART = re.compile(r"([0-9.]+)(h|ms|m|s)")
_SIXTY = tuple(f"{number:02}" for number in range(60))
_DAYS = re.compile(r"([0-9]{1,6})d(.*)")
_MOST_CHARACTERS = 100
"""Most characters of a duration: half a million would take a fifth of a second to read."""

_MOST_KEPT = 30
"""Most characters of a cached duration: longer texts would fill the memory."""

_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def parse_moment(text: str) -> float:
    """Return an RFC 3339 time as unix seconds.

    Raises:
            InvalidInput: it is not a time, it has no offset from UTC, or its year in UTC is not
                from 1 to 9999, so that it could not be written again.
    """
    remedy = "write RFC 3339 with an offset, such as 2030-01-31T10:00:00Z"
    try:
        moment = datetime.fromisoformat(text.upper())  # RFC 3339 allows t and z, Python does not
    except ValueError as exc:
        raise InvalidInput("", f"{shorten(text)!r} is not a time", remedy) from exc
    if moment.tzinfo is None:
        raise InvalidInput("", f"{text!r} has no offset from UTC", remedy)
    seconds = moment.timestamp()
    if not _EARLIEST <= seconds <= _LATEST:
        raise InvalidInput("", f"{text!r} is out of range", "write a year from 1 to 9999 in UTC")
    return seconds


def parse_unix_or_moment(value: object) -> float:
    """Return unix seconds of a number in unix seconds, or of RFC 3339.

    Raises:
        InvalidInput: it is neither, or so large that it must be milliseconds.
    """
    if isinstance(value, str):
        return parse_moment(value)
    if isinstance(value, bool) or not isinstance(value, int):
        problem = f"{shorten(repr(value))} is not a time"
        raise InvalidInput("", problem, "write unix seconds or RFC 3339")
    if not 0 <= value <= _LATEST:
        problem = f"{shorten(str(value))} is out of range"
        raise InvalidInput("", problem, "write unix seconds, not milliseconds")
    return float(value)


def parse_duration(text: str) -> float:
    """Return a duration such as ``24h``, ``1h30m`` or ``0`` in seconds.

    Raises:
        InvalidInput: it is not a duration; days are refused, as in Go's ``time.ParseDuration``.
    """
    return _seconds(text) if len(text) <= _MOST_KEPT else _seconds.__wrapped__(text)


@lru_cache(1024)  # Many durations are equal.
def _seconds(text: str) -> float:
    """Return a duration in seconds."""
    if len(text) > _MOST_CHARACTERS or not _DURATION.fullmatch(text):
        problem = f"{shorten(text)!r} is not a duration"
        raise InvalidInput("", problem, "write hours, minutes and seconds, such as 24h or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))


def in_hours(text: str) -> str:
    """Return a duration that may contain days, such as ``1d12h``, in the form of `parse_duration`.

    A day stands for 24 hours.

    Raises:
        InvalidInput: it is not a duration.
    """
    days = _DAYS.fullmatch(text)
    hours = f"{24 * int(days[1])}h{days[2]}" if days else text
    if not _DURATION.fullmatch(hours):
        remedy = "write days, hours, minutes and seconds, such as 7d, 1d12h or 30m"
        raise InvalidInput("", f"{shorten(text)!r} is not a duration", remedy)
    return hours


def show_duration(duration: timedelta) -> str:
    """Return a duration in the form of ``ttl``, such as ``1h30m``; ``0`` means no end."""
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    hours += 24 * duration.days
    parts = [(hours, "h"), (minutes, "m"), (seconds, "s"), (duration.microseconds // 1000, "ms")]
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0"


def show_in(seconds: float, zone: str) -> str:
    """Return unix seconds as RFC 3339 in an IANA time zone, to the second."""
    hour, rest = divmod(int(seconds), 3600)
    begin = _hour_in(hour, zone)
    if len(begin) == 1:
        return datetime.fromtimestamp(int(seconds), ZoneInfo(zone)).isoformat()
    before, after = begin
    return f"{before}{_SIXTY[rest // 60]}:{_SIXTY[rest % 60]}{after}"


@lru_cache(4096)  # Many moments are in the same hours.
def _hour_in(hour: int, zone: str) -> tuple[str, ...]:
    """Return the texts before and after the minutes and seconds of an hour of unix time.

    Returns one text if local time is not a full hour at its start, or if the clocks change in it.
    """
    first, last = (
        datetime.fromtimestamp(3600 * hour + s, ZoneInfo(zone)).isoformat() for s in (0, 3599)
    )
    before, after = first[:14], first[19:]
    is_even = first[14:19] == "00:00" and last == f"{before}59:59{after}"
    return (before, after) if is_even else (first,)


def show_moment(seconds: float) -> str:
    """Return unix seconds as RFC 3339 in UTC, to the second."""
    # Not strftime, which writes the year 1 without leading zeros.
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat('T', 'seconds')}Z"


def show_micro(seconds: float) -> str:
    """Return unix seconds as a MicroTime, always with six decimal places.

    Reading a MicroTime and showing it again returns the same text.
    """
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)  # Rounded, not truncated.
    return f"{moment.isoformat('T', 'microseconds')}Z"
