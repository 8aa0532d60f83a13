"""Times, durations and schedules of flags, as people say them: ``22:00 weekdays``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from reserver.cli.failure import WrongUsage
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import in_hours, parse_duration, parse_moment

FORMS = "22:00, 'tomorrow 18:00', '2030-01-31 10:00 Europe/Berlin', +2h, or RFC 3339"
_CLOCK = re.compile(
    r"(?:(?P<day>today|tomorrow|\d{4}-\d{2}-\d{2})[ T])?(?P<clock>\d{1,2}:\d{2}(?::\d{2})?)"
    r"(?: (?P<after>today|tomorrow))?(?: ?(?P<zone>Z|[+-]\d{2}:\d{2}|[A-Za-z]\S*))?"
)
_DAY = timedelta(days=1)

Localize = Callable[[datetime], datetime]


def duration(flag: str, text: str) -> timedelta:
    """Return a duration that a flag gives.

    Raises:
        Failed: it is none.
    """
    try:
        return timedelta(seconds=parse_duration(in_hours(text)))
    except (InvalidInput, OverflowError) as exc:
        raise WrongUsage(f"{flag}: {exc}") from exc


def moment(flag: str, text: str, now: datetime, local: Localize = datetime.astimezone) -> datetime:
    """Return the moment of a flag, in one of `FORMS`.

    A time of day without a day is the next one. A time without a zone is local.

    Args:
        flag: the name of the flag, for errors.
        text: the moment.
        now: the present, in the user's zone.
        local: gives a naive datetime the local zone.

    Raises:
        Failed: the text is not a moment.
    """
    problem = f"{shorten(text)!r} is not a time"
    try:
        found = _relative(text, now) or _of_clock(text, now, local)
        seconds = parse_moment(found.isoformat() if found else text)
    except InvalidInput as exc:
        said = str(exc) if "range" in exc.problem else f"{problem}; write {FORMS}"
        raise WrongUsage(f"{flag}: {said}") from exc
    except (KeyError, ValueError, OverflowError) as exc:
        raise WrongUsage(f"{flag}: {problem}; write {FORMS}") from exc
    return found or datetime.fromtimestamp(seconds, UTC)


def future(flag: str, text: str, now: datetime) -> datetime:
    """Return a moment of the future that a flag gives; the rest is as `moment` has it."""
    found = moment(flag, text, now)
    if found <= now:
        raise WrongUsage(f"{flag}: {shorten(text)!r} lies in the past; it is {now:%Y-%m-%d %H:%M}")
    return found


def _relative(text: str, now: datetime) -> datetime | None:
    if not text.startswith("+"):
        return None
    return now + timedelta(seconds=parse_duration(in_hours(text[1:])))


def _of_clock(text: str, now: datetime, local: Localize) -> datetime | None:
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    clock, zone = time.fromisoformat(match["clock"].zfill(5)), match["zone"]
    day = match["day"] or match["after"]
    if match["day"] and match["after"]:
        return None

    def on(day: date) -> datetime:
        naive = datetime.combine(day, clock)
        return naive.replace(tzinfo=_zone(zone)) if zone else local(naive)

    today = (now.astimezone(_zone(zone)) if zone else now).date()
    if day == "tomorrow":
        return on(today + _DAY)
    if day not in {None, "today"}:
        return on(date.fromisoformat(day))
    there = on(today)
    return there if day or there > now else on(today + _DAY)


def _zone(text: str) -> tzinfo | None:
    if text == "Z" or text[0] in "+-":
        return datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo
    return ZoneInfo(text)


_CRON_FIELDS = 5
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SETS = {"daily": "*", "weekdays": "1-5", "weekends": "0,6"}
_SCHEDULE_FORMS = "write '22:00 weekdays', '8:30 mon,thu', '9:00 daily', or cron: '0 22 * * 1-5'"


def cron(flag: str, text: str) -> str:
    """Return the cron expression of a time of day with days, or of cron itself.

    Raises:
        Failed: it is neither.
    """
    words = text.split()
    if len(words) == _CRON_FIELDS:
        return " ".join(words)
    clock = _TIME_OF_DAY.fullmatch(words[0]) if words else None
    days = _days(words[1:])
    if clock is None or days is None:
        raise WrongUsage(f"{flag}: {shorten(text)!r} is not a schedule; {_SCHEDULE_FORMS}")
    hour, minute = map(int, clock.groups())
    return f"{minute} {hour} * * {days}"


def _days(words: list[str]) -> str | None:
    """Return the field of cron for days of the week; None if these are none."""
    said = ",".join(words).lower() or "daily"
    if said in _SETS:
        return _SETS[said]
    names = [name[:3] for name in said.split(",") if name]
    known = all(name in _WEEKDAYS for name in names)
    return ",".join(str(_WEEKDAYS.index(name)) for name in dict.fromkeys(names)) if known else None
