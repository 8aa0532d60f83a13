"""Limits of judgement after missed writes."""

from __future__ import annotations

from collections.abc import Iterable

from hack.promises.history import Gap, History, Line, Moment


def gaps_of(history: History, collection: str) -> tuple[Gap, ...]:
    """Return the gaps of one collection."""
    return tuple(gap for gap in history.gaps if gap.collection == collection)


def gap_over(moment: Moment, gaps: Iterable[Gap]) -> Gap | None:
    """Return the gap in which something was written, if there is one."""
    over = (g for g in gaps if g.since.revision < moment.revision <= g.until.revision)
    return next(over, None)


def ending(
    lines: list[Line], gaps: tuple[Gap, ...], heir: Line | None = None
) -> tuple[Moment, Moment] | None:
    """Return when something went, at the earliest and at the latest; None if it did not.

    Args:
        lines: all that was written of it.
        gaps: of its collection.
        heir: how the next one of its name was first seen.
    """
    if lines[-1].kind == "DELETED":
        return lines[-1].moment, lines[-1].moment
    last, name = lines[-1].moment.revision, lines[-1].name
    # One that came again under its name in the gap is there after it, and yet it went.
    until = heir.moment.revision if heir else -1
    later = (g for g in gaps if g.since.revision >= last)
    gap = next((g for g in later if name in g.gone or g.since.revision < until), None)
    return (beginning(gap), gap.until) if gap else None


def went(lines: list[Line], gaps: tuple[Gap, ...]) -> Moment | None:
    """Return when something may have gone at the earliest: it is not counted on."""
    end = ending(lines, gaps)
    return end[0] if end else None


def beginning(gap: Gap) -> Moment:
    """Return when what went in a gap may have gone at the earliest."""
    return Moment(gap.since.revision + 1, gap.since.at)
