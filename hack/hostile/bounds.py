"""Bounds on the tenant's cost, and the measured cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hack.hostile.probe import Phase

SLOWER = 3.0
"""Most times as long as quiet for the 99th percentile of Filter calls, measured in that of answers
without a decision: other load of the machine prolongs both."""

HELD_S = 0.2
"""Longest block of the event loop, in seconds of an idle core."""

COMPUTED_S = 0.1
"""Most of that block in CPU time of Reserver, in seconds of an idle core: other processes may have
the cores for the rest."""

RSS_BYTES = 512 << 20
"""Most resident memory, in bytes."""

START_SLOWER = 2.0
"""Most times as long as quiet for a start until Reserver is ready."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """All measurements.

    Attributes:
        quiet: the phase without the tenant.
        hostile: the phase with the tenant.
        quiet_starts: seconds from each start until Reserver was ready, before the tenant came.
        hostile_starts: the same with all objects of the tenant, which keeps writing.
        ended: number of times that Reserver ended by itself.
        slowness: duration of a computation in the quiet phase, relative to an idle core.
    """

    quiet: Phase
    hostile: Phase
    quiet_starts: Sequence[float]
    hostile_starts: Sequence[float]
    ended: int
    slowness: float = 1.0


@dataclass(frozen=True)
class Row:
    """One line of the table: title, both values, bound, and whether it is kept."""

    what: str
    quiet: str
    hostile: str
    bound: str = ""
    is_kept: bool = True


def judge(found: Found) -> Iterator[Row]:
    """Yield the values and the bound of each measurement."""
    quiet, hostile = found.quiet, found.hostile
    yield _row("Filter p50", _ms, quantile(quiet.seconds, 0.5), quantile(hostile.seconds, 0.5))
    p99s = quantile(quiet.seconds, 0.99), quantile(hostile.seconds, 0.99)
    floors = quantile(quiet.floor, 0.99), quantile(hostile.floor, 0.99)
    yield _row("Filter p99", _ms, *p99s)
    yield _row("of the floor", _ms, *floors)
    yield _times(
        "Filter p99 in floors", _ratio(p99s[0], floors[0]), _ratio(p99s[1], floors[1]), SLOWER, _x
    )
    yield Row("Filter p99, its pods", "", _ms(quantile(hostile.tenants, 0.99)))
    held_s, computed_s = HELD_S * found.slowness, COMPUTED_S * found.slowness
    yield _row("event loop held", _ms, _longest(quiet), _longest(hostile), most=held_s)
    yield _row("of CPU", _ms, _computed(quiet), _computed(hostile), most=computed_s)
    yield _row("slowest /readyz", _ms, quantile(quiet.looks, 1), quantile(hostile.looks, 1))
    yield _row("not ready", _count, quiet.unready, hostile.unready, most=0)
    yield _row("calls that failed", _count, len(quiet.failures), len(hostile.failures), most=0)
    yield _row("held nodes offered", _count, quiet.given_away, hostile.given_away, most=0)
    yield Row("ended by itself", "", str(found.ended), "0", is_kept=not found.ended)
    yield _row("RSS", _mib, quiet.rss, hostile.rss, most=RSS_BYTES)
    starts = quantile(found.quiet_starts, 0.5), quantile(found.hostile_starts, 0.5)
    yield _times("restart to ready", *starts, START_SLOWER, _ms)


def _longest(phase: Phase) -> float:
    return max((hold.seconds for hold in phase.held), default=0.0)


def _computed(phase: Phase) -> float:
    return max((hold.cpu_seconds for hold in phase.held), default=0.0)


def _row(
    what: str, show: Callable[[float], str], quiet: float, hostile: float, most: float = math.inf
) -> Row:
    bound = show(most) if math.isfinite(most) else ""
    return Row(what, show(quiet), show(hostile), bound, is_kept=hostile <= most)


def _times(
    what: str, quiet: float, hostile: float, most: float, show: Callable[[float], str]
) -> Row:
    ratio = _ratio(hostile, quiet)
    bound = f"{most:g} × ({ratio:.1f} ×)"
    return Row(what, show(quiet), show(hostile), bound, is_kept=ratio <= most)


def _ratio(value: float, to: float) -> float:
    return value / to if math.isfinite(to) and to else math.inf


def _x(ratio: float) -> str:
    return f"{ratio:.2f} ×"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile of the values; infinity without any, which breaks every bound."""
    if not values:
        return math.inf
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"


def _mib(size: float) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _count(number: float) -> str:
    return f"{number:,.0f}"
