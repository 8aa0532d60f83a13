"""What the tenant may cost, and what it did."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hack.hostile.probe import Phase

SLOWER = 3.0
"""How many times as long the 99th percentile of Filter calls may take, measured in that of answers
that decide nothing: what the machine does meanwhile prolongs both."""

HELD_S = 0.2
"""How long the event loop may be held, in seconds of an idle core."""

COMPUTED_S = 0.1
"""How much of that may be its own computing, in seconds of an idle core's CPU: others may have the
cores."""

RSS_BYTES = 512 << 20
"""How much memory may be resident, in bytes."""

START_SLOWER = 2.0
"""How many times as long a start may take until Reserver is ready."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """All that was measured.

    Attributes:
        quiet: without the tenant.
        hostile: with it.
        quiet_starts: from each start until Reserver was ready, in seconds, before the tenant came.
        hostile_starts: the same with all that it wrote, and goes on to write.
        ended: how often Reserver ended by itself.
        slowness: how many times as long as on an idle core a computation took, quiet.
    """

    quiet: Phase
    hostile: Phase
    quiet_starts: Sequence[float]
    hostile_starts: Sequence[float]
    ended: int
    slowness: float = 1.0


@dataclass(frozen=True)
class Row:
    """One line of the table: what, how much of it, how much is allowed, whether that is kept."""

    what: str
    quiet: str
    hostile: str
    bound: str = ""
    is_kept: bool = True


def judge(found: Found) -> Iterator[Row]:
    """Yield what each bound allows and what there was."""
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
    """Return the value that so many of all do not exceed; without any, one that no bound allows."""
    if not values:
        return math.inf
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"


def _mib(size: float) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _count(number: float) -> str:
    return f"{number:,.0f}"
