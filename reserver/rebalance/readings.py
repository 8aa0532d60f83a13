"""Averages readings of metrics, because a varying load may be read at its peak.

Old readings fade. The average is a value: `average` returns the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.cluster.pod import PodName

Usage = Mapping[str, float]
"""By resource: millicores of cpu, base units of all else."""

FADES_S = 300.0
"""A reading counts for 1/e after so many seconds: a load that swings each minute is flat then."""


class Reading(NamedTuple):
    """The usage of a node or a pod around a moment.

    Attributes:
        usage: the average over the window.
        at: the end of the window, in unix seconds.
        window_s: its length, in seconds.
    """

    usage: Usage
    at: float
    window_s: float = 0.0

    @property
    def since(self) -> float:
        """The beginning of the window, in unix seconds."""
        return self.at - self.window_s

    def share_before(self, moment: float) -> float:
        """Return the share of its window that lies before a moment."""
        if self.window_s <= 0:
            return float(self.at < moment)
        return min(1.0, max(0.0, (moment - self.since) / self.window_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The readings of a metrics source at one time.

    Attributes:
        nodes: usage by name.
        pods: usage by name; empty if the source has none.
        problems: ignored readings, for people.
    """

    nodes: Mapping[str, Reading] = field(default_factory=dict)
    pods: Mapping[PodName, Reading] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


class Average(NamedTuple):
    """An average of readings in which old ones fade.

    Attributes:
        usage: the average.
        at: the end of the latest window, in unix seconds.
        since: the beginning of that window.
        weight_s: how much time it stands for; at most `FADES_S`.
    """

    usage: Usage
    at: float
    since: float
    weight_s: float

    def share_before(self, moment: float) -> float:
        """Return the share of it that is of the time before a moment."""
        if self.at <= moment:
            return 1.0
        return max(0.0, 1.0 - _share(self.at - moment) / self.weight_s)


def average(before: Average | None, reading: Reading) -> Average:
    """Return the average with one more reading; one that was seen before changes nothing.

    A reading stands for the time since the one before it. So it does not matter how often readings
    are taken, and the first ones do not count for more than they are.
    """
    if before is None:
        return Average(reading.usage, reading.at, reading.since, _share(reading.window_s or 1.0))
    if reading.at <= before.at:
        return before
    kept = before.weight_s * math.exp((before.at - reading.at) / FADES_S)
    added = _share(reading.at - before.at)
    total = kept + added
    usage = {
        name: (before.usage.get(name, amount) * kept + amount * added) / total
        for name, amount in reading.usage.items()
    }
    return Average(usage, reading.at, reading.since, total)


def _share(seconds: float) -> float:
    """Return what so much time counts for once it is over, in seconds: some of it has faded."""
    return FADES_S * -math.expm1(-seconds / FADES_S)


def shifted(usage: Usage, amount: Usage, times: float) -> Usage:
    """Return a usage with an amount added so many times, never below nothing."""
    return {name: max(0.0, had + times * amount.get(name, 0.0)) for name, had in usage.items()}
