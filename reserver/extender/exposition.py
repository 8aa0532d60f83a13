"""The metrics endpoint: metrics as text, families of metrics, and counts of refused calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Survey = Callable[[], Awaitable[None]]
"""Counts what takes long to count, and gives way to calls meanwhile."""

_SHARE = 0.1
"""The share of the time that it may take: anybody may ask, as often as they like."""


Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values by the values of labels."""


def counter(name: str, told: str, samples: Samples | float, labels: tuple[str, ...] = ()) -> Metric:
    """Return a family of counters with its samples, or its value where it has no labels."""
    return _family(CounterMetricFamily, name, told, samples, labels)


def gauge(name: str, told: str, samples: Samples | float, labels: tuple[str, ...] = ()) -> Metric:
    """Return a family of gauges; the arguments are those of `counter`."""
    return _family(GaugeMetricFamily, name, told, samples, labels)


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    told: str,
    samples: Samples | float,
    labels: tuple[str, ...],
) -> Metric:
    if isinstance(samples, int | float):
        return kind(name, told, value=samples)
    family = kind(name, told, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def refusals(registry: CollectorRegistry) -> Callable[[str], None]:
    """Return what counts HTTP calls that a door refuses, by reason."""
    refused = Counter(
        "reserver_http_refused",
        "HTTP connections and calls that were refused unread, by reason.",
        ("reason",),
        registry=registry,
    )
    return lambda reason: refused.labels(reason).inc()


async def no_survey() -> None:
    """Count nothing: what is exposed is at hand."""


class Exposition:
    """The text of the metrics; repeated for ten times as long as it took to make."""

    def __init__(
        self,
        registry: CollectorRegistry,
        survey: Survey = no_survey,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Expose a registry.

        Args:
            survey: is awaited before they are read.
            clock: returns seconds.
        """
        self._registry = registry
        self._survey = survey
        self._clock = clock
        self._made: asyncio.Task[bytes] | None = None
        self._until = float("-inf")

    async def text(self) -> bytes:
        """Return the metrics as they are, or were a moment ago.

        All callers share one text, and a caller that leaves does not stop its making: else who
        comes and goes would have it begun again and again.
        """
        if self._made is None or (self._made.done() and self._clock() >= self._until):
            self._made = asyncio.create_task(self._make())
        return await asyncio.shield(self._made)

    async def _make(self) -> bytes:
        began = self._clock()
        await self._survey()
        text = generate_latest(self._registry)
        self._until = began + (self._clock() - began) / _SHARE
        return text
