"""cron expressions as `cronsim` reads them: times of a day, and the days.

Fields are read one by one, and kept: ten thousand expressions, each for a time of its own, have a
few hundred fields.
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
"""From here on what must not depend on today is asked."""

LAST_YEAR = 9900
"""cron is not asked about years that the calendar of Python ends in."""

_YEARS = 50
"""What does not happen for so many years never does."""

_MONTHS = 12
_KEPT = 4096
"""So many fields of each kind, none longer than an expression may be."""


class Field(NamedTuple):
    """The hours of a day, or the minutes of an hour.

    Attributes:
        numbers: sorted.
        gap: the least between two of them; infinite if there is one.
    """

    numbers: tuple[int, ...]
    gap: float

    @property
    def span(self) -> int:
        """From the first to the last."""
        return self.numbers[-1] - self.numbers[0]


class Cron(NamedTuple):
    """A cron expression, parsed.

    Attributes:
        days: its last three fields, which say the days.
        hours: of each day.
        minutes: of each of these hours.
        is_fixed: neither its minute nor its hour begins with ``*``.
    """

    days: str
    hours: Field
    minutes: Field
    is_fixed: bool

    def times(self, since: int) -> Iterator[int]:
        """Yield the times of a day from one on, in minutes."""
        for hour in self.hours.numbers:
            for minute in self.minutes.numbers if 60 * hour + 60 > since else ():
                if 60 * hour + minute >= since:
                    yield 60 * hour + minute

    def least_gap(self, days: int = 1) -> float:
        """Return the least seconds between two starts whose days are so many apart at least."""
        hours = min(self.hours.gap, 24 * days - self.hours.span)
        return 60.0 * min(self.minutes.gap, 60 * hours - self.minutes.span)


@lru_cache(1024)  # Who checks one asks for its first occurrence, too.
def parse(text: str) -> Cron:
    """Return an expression of five fields; raises what `cronsim` does."""
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
    """Yield the days that the last three fields of an expression say, until there is none.

    A day is its number in the calendar (`date.toordinal`).
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


@lru_cache(16_384)  # Many keep the same days, each at a time of its own.
def _days_of(fields: str, month: int, weekday: int, length: int) -> int:
    """Return the days of a month as bits: the first day is bit 1.

    Years do not matter: the month begins on a day of the week (0 is Monday), and has so many days.
    Within 28 years each month has all of these.
    """
    like = (weekday, length)
    year = next(y for y in range(EPOCH.year, EPOCH.year + 28) if _month(y, month)[1:] == like)
    numbers = (date(year, month, day) for day in range(1, length + 1))
    cron = _rule(fields)
    return sum(1 << day.day for day in numbers if cron.match_day(day))


@lru_cache(_KEPT)
def _rule(fields: str) -> CronSim:
    return CronSim(f"0 0 {fields}", EPOCH)
