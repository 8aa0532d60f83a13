"""The life of what recurs, as one life an occurrence: as if each were written as the last ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from hack.promises.history import History, Moment
from hack.promises.life import Life
from hack.promises.series import Course, Occurrence, Series


def occurrences(life: Life, history: History) -> Iterator[Life]:
    """Yield a life for each occurrence of what recurs; of all else its own."""
    series = life.entry.series
    if series is None:
        yield life
        return
    end = life.gone.at if life.gone else history.end
    since: Moment | None = life.written
    while since is not None:
        course = _course(life, since)
        found = course.occurrence(series, since.at)
        ends = [each for each, other in life.courses if _differs(each, other, since, found, series)]
        if found is not None:
            ends.append(Moment(history.revision_at(found.end) + 1, found.end))  # After all before.
        until = min((each for each in ends if each.at < end), key=lambda m: m.at, default=None)
        yield _one(life, found, since, until)
        since = until


def _course(life: Life, at: Moment) -> Course:
    return next(course for each, course in reversed(life.courses) if each.at <= at.at)


def _differs(
    at: Moment, course: Course, since: Moment, found: Occurrence | None, series: Series
) -> bool:
    """Return whether an edit makes of the occurrence of before another one."""
    return at.at > since.at and course.occurrence(series, at.at) != found


def _one(life: Life, found: Occurrence | None, since: Moment, until: Moment | None) -> Life:
    """Return the life of an occurrence; without one it is over, and holds nothing."""
    series, course = life.entry.series, _course(life, since)
    assert series is not None  # noqa: S101 - for mypy
    holds = found is not None and not course.is_suspended
    begins = found.start - series.lead if holds and found else math.inf
    ends = found.end if found else since.at
    before = [parts for each, parts in life.moves if each.at <= since.at]
    later = [move for move in life.moves if move[0].at > since.at]
    if until is not None:
        later = [move for move in later if move[0].at <= until.at]
    return replace(
        life,
        entry=replace(life.entry, starts=begins, expires=ends, ttl_s=None),
        written=since,
        gone=until or life.gone,
        in_gap=life.in_gap and until is None,
        deleted=life.deleted and until is None,
        moves=(*[(since, parts) for parts in before[-1:]], *later),
        goes_on=until is not None,
        comes_again=found is not None and course.occurrence(series, found.end) is not None,
    )
