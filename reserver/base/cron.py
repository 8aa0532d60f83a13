"""cron expressions as `cronsim` reads them, split into times of a day and days.

Each field is parsed and cached on its own: ten thousand expressions with different times have a few
hundred different fields.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import NamedTuple

from cronsim import CronSim

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
"""The start of every calculation that must not depend on the current date."""

LAST_YEAR = 9900
"""The last year searched for an occurrence; the calendar of Python ends in year 9999."""

_YEARS = 50
"""Years without an occurrence after which the search ends: the schedule never occurs again."""

_KEPT = 4096
"""Parsed fields in each cache; callers bound the length of an expression."""


class Field(NamedTuple):
    """The hours of a day, or the minutes of an hour.

    Attributes:
        numbers: sorted.
        gap: the smallest difference between two neighbours; infinite for a single number.
    """

    numbers: tuple[int, ...]
    gap: float

    @property
    def span(self) -> int:
        """The difference between the last and the first number."""
        return self.numbers[-1] - self.numbers[0]


class Cron(NamedTuple):
    """A cron expression, parsed.

    Attributes:
        days: the last three fields: day of the month, month and day of the week.
        hours: the hours of each day.
        minutes: the minutes of each such hour.
        is_fixed: neither its minute nor its hour begins with ``*``.
    """

    days: str
    hours: Field
    minutes: Field
    is_fixed: bool

    def times(self, since: int) -> Iterator[int]:
        """Yield the times of a day in minutes after midnight, from `since` on."""
        for hour in self.hours.numbers:
            for minute in self.minutes.numbers if 60 * hour + 60 > since else ():
                if 60 * hour + minute >= since:
                    yield 60 * hour + minute

    def least_gap(self, days: int = 1) -> float:
        """Return the smallest gap in seconds between starts at least `days` days apart."""
        hours = min(self.hours.gap, 24 * days - self.hours.span)
        return 60.0 * min(self.minutes.gap, 60 * hours - self.minutes.span)


@lru_cache(1024)  # A caller checks an expression, then asks for its first occurrence.
def parse(text: str) -> Cron:
    """Parse an expression of five fields; raises the errors of `cronsim`."""
    minutes, hours, fields = text.split(maxsplit=2)
    is_fixed = not (minutes[0] == "*" or hours[0] == "*")
    read = Cron(fields, minutes=_minutes(minutes), hours=_hours(hours), is_fixed=is_fixed)
    _rule(fields)
    return read


@lru_cache(_KEPT)
def _minutes(text: str) -> Field:
    return _field(CronSim(f"{text} * * * *", EPOCH).minutes)


@lru_cache(_KEPT)
def _hours(text: str) -> Field:
    return _field(CronSim(f"* {text} * * *", EPOCH).hours)


def _field(read: set[int]) -> Field:
    numbers = tuple(sorted(read))
    return Field(numbers, min((after - before for before, after in pairwise(numbers)), default=inf))


def days(fields: str, since: int) -> Iterator[int]:
    """Yield the days that match the last three fields of an expression, from `since` on.

    A day is its ordinal in the calendar (`date.toordinal`). Ends after `_YEARS` without a match.
    """
    first = date.fromordinal(since)
    year, last = first.year, min(first.year + _YEARS, LAST_YEAR)
    while year <= last:
        for month in _months(fields):
            if (year, month) < (first.year, first.month):
                continue
            before, *like = _month(year, month)
            found = _days_of(fields, month, *like)
            if (year, month) == (first.year, first.month):
                found = found >> first.day << first.day
            while found:
                lowest = found & -found
                yield before + lowest.bit_length() - 1
                found ^= lowest
                last = min(year + _YEARS, LAST_YEAR)
        year += 1


@lru_cache(_KEPT)
def _months(fields: str) -> tuple[int, ...]:
    return tuple(sorted(_rule(fields).months))


@lru_cache(1024)
def _month(year: int, month: int) -> tuple[int, int, int]:
    """Return the day before a month, the weekday that the month begins on, and its length."""
    return date(year, month, 1).toordinal() - 1, *monthrange(year, month)


@lru_cache(16_384)  # Many schedules share their days and differ in the time of day.
def _days_of(fields: str, month: int, weekday: int, length: int) -> int:
    """Return the matching days of a month as bits: the first day is bit 1.

    The year does not matter: only the weekday of the first day (0 is Monday) and the number of days
    do. Each month has every such combination within 28 years.
    """
    like = (weekday, length)
    year = next(y for y in range(EPOCH.year, EPOCH.year + 28) if _month(y, month)[1:] == like)
    numbers = (date(year, month, day) for day in range(1, length + 1))
    cron = _rule(fields)
    return sum(1 << day.day for day in numbers if cron.match_day(day))


@lru_cache(_KEPT)
def _rule(fields: str) -> CronSim:
    return CronSim(f"0 0 {fields}", EPOCH)
