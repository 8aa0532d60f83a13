"""Prometheus metrics, counted at calls or read from the state at each scrape, and their text."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from typing import Protocol, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reserver import DISTRIBUTION
from reserver.base.quarantine import Component
from reserver.base.quarantine import counts as faults
from reserver.scheduling.state import State

Survey = Callable[[], Awaitable[None]]
"""Computes values that take long to count, in steps with other work in between."""

_SHARE = 0.1
"""The share of the process's time for expositions: any client may scrape at any rate."""


Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values by label values."""


def counter(
    name: str, help_text: str, samples: Samples | float, labels: tuple[str, ...] = ()
) -> Metric:
    """Return a family of counters with its samples, or its value if it has no labels."""
    return _family(CounterMetricFamily, name, help_text, samples, labels)


def gauge(
    name: str, help_text: str, samples: Samples | float, labels: tuple[str, ...] = ()
) -> Metric:
    """Return a family of gauges; the arguments are those of `counter`."""
    return _family(GaugeMetricFamily, name, help_text, samples, labels)


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    help_text: str,
    samples: Samples | float,
    labels: tuple[str, ...],
) -> Metric:
    if isinstance(samples, int | float):
        return kind(name, help_text, value=samples)
    family = kind(name, help_text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def refusals(registry: CollectorRegistry) -> Callable[[str], None]:
    """Return a function that counts refused HTTP calls by reason."""
    refused = Counter(
        "reserver_http_refused",
        "HTTP connections and calls that were refused unread, by reason.",
        ("reason",),
        registry=registry,
    )
    return lambda reason: refused.labels(reason).inc()


async def no_survey() -> None:
    """Compute nothing: all exposed values are at hand."""


class Exposition:
    """The text of the metrics, cached for ten times as long as it took to make."""

    def __init__(
        self,
        registry: CollectorRegistry,
        survey: Survey = no_survey,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Expose a registry.

        Args:
            survey: awaited before the metrics are read.
            clock: returns seconds.
        """
        self._registry = registry
        self._survey = survey
        self._clock = clock
        self._made: asyncio.Task[bytes] | None = None
        self._until = float("-inf")

    async def text(self) -> bytes:
        """Return the current text, or the cached one.

        All callers share one text, and a cancelled caller does not stop its making: else clients
        that disconnect would start it again and again.
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


_COUNTED = (
    (
        "reserver_extender_calls",
        "Calls by verb and outcome: passed, refused, bound or error.",
        ("verb", "outcome"),
    ),
    ("reserver_grpc_calls", "gRPC calls by method and status code.", ("method", "code")),
    (
        "reserver_pod_moves",
        "PodMoves that came to a phase, by phase and reason.",
        ("phase", "reason"),
    ),
)

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LANDING_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_BLOCKED_SECONDS = (0.2, 0.5, 1, 2.5, 5, 10)

_Timed = tuple[str, str, tuple[str, ...], tuple[float, ...]]
_TIMED: tuple[_Timed, ...] = (
    (
        "reserver_extender_call_seconds",
        "Time from the request's last byte to the answer, in seconds.",
        ("verb",),
        _SECONDS,
    ),
    (
        "reserver_grpc_call_seconds",
        "Time from a gRPC request to the end of its answer, in seconds.",
        ("method",),
        _SECONDS,
    ),
    (
        "reserver_pod_move_landing_seconds",
        "Time from the eviction of a pod that moves until its replacement is bound, by mode.",
        ("mode",),
        _LANDING_SECONDS,
    ),
    (
        "reserver_webhook_call_seconds",
        "Time from a webhook call's last byte to the answer, in seconds, by outcome.",
        ("webhook", "outcome"),
        _SECONDS,
    ),
    (
        "reserver_event_loop_blocked_seconds",
        "Times for which a function blocked the event loop for longer than 0.1 seconds.",
        ("by",),
        _BLOCKED_SECONDS,
    ),
    (
        "reserver_event_loop_held_seconds",
        "Deprecated: use reserver_event_loop_blocked_seconds.",
        ("by",),
        _BLOCKED_SECONDS,
    ),
)

Families = Callable[[], Iterable[Metric]]


class MeasuredState(Protocol):
    """The state that gauges are read from (`reserver.process.assembly.Assembly`)."""

    @property
    def state(self) -> State:
        """The state of decisions."""

    @property
    def expiring(self) -> int:
        """The number of unclaimed holds that expire soon."""

    @property
    def is_ready(self) -> bool:
        """Whether calls are decided."""


class Metrics:
    """The metrics of one process.

    Attributes:
        count_refused: counts an HTTP call that was refused unread, by its reason.
        calls: extender calls, labelled by verb and outcome.
        seconds: their duration, labelled by verb.
    """

    def __init__(
        self, measured: MeasuredState, families: Families, survey: Survey = no_survey
    ) -> None:
        """Begin to count calls; other values are read at each scrape.

        Args:
            measured: the state.
            families: returns the metrics of the parts of the process.
            survey: computes values of `families` that take long.
        """
        disable_created_metrics()  # They would add unused time series.
        registry = CollectorRegistry()
        self.exposition = Exposition(registry, survey)
        self.count_refused = refusals(registry)
        self.calls, self._rpcs, self._moves = (
            Counter(name, help_text, labels, registry=registry)
            for name, help_text, labels in _COUNTED
        )
        self.seconds, self._rpc_seconds, self._landing, self._webhooks, *self._blocked = (
            Histogram(name, help_text, labels, buckets=buckets, registry=registry)
            for name, help_text, labels, buckets in _TIMED
        )
        self._begin_at_zero()
        _describe_process(registry)
        registry.register(_StateCollector(measured, families))

    def _begin_at_zero(self) -> None:
        """Expose counters at 0 whose first increment has to show."""
        for verb, done in (("filter", "passed"), ("preempt", "passed"), ("bind", "bound")):
            for outcome in (done, "refused", "error"):
                self.calls.labels(verb, outcome)
        for webhook in ("patch", "resize"):
            self._webhooks.labels(webhook, "error")

    def blocked(self, by: str, seconds: float) -> None:
        """Count the seconds for which a function blocked the event loop."""
        for family in self._blocked:
            family.labels(by).observe(seconds)

    def count_move(self, phase: str, reason: str) -> None:
        """Count a PodMove's new phase."""
        self._moves.labels(phase, reason).inc()

    def count_landing(self, mode: str, seconds: float) -> None:
        """Count the seconds from an eviction to the binding of the replacement."""
        self._landing.labels(mode).observe(seconds)

    def count_webhook(self, webhook: str, outcome: str, seconds: float) -> None:
        """Count a call of a webhook."""
        self._webhooks.labels(webhook, outcome).observe(seconds)

    def count_rpc(self, method: str, code: str, seconds: float) -> None:
        """Count a gRPC call; the duration of a watch is not recorded."""
        self._rpcs.labels(method, code).inc()
        if not method.endswith("/Watch"):
            self._rpc_seconds.labels(method).observe(seconds)


def _describe_process(registry: CollectorRegistry) -> None:
    """Expose the version, and the process's resource use under Prometheus' standard names."""
    ProcessCollector(registry=registry)
    help_text = "1; the version that runs, and that of Python."
    labels = ("version", "python_version")
    build = Gauge("reserver_build_info", help_text, labels, registry=registry)
    build.labels(version(DISTRIBUTION), platform.python_version()).set(1)


class _StateCollector(Collector):
    def __init__(self, measured: MeasuredState, families: Families) -> None:
        self._measured, self._families = measured, families

    def collect(self) -> Iterable[Metric]:
        measured = self._measured
        help_text = "1 when calls are decided, 0 when refused."
        yield gauge("reserver_ready", help_text, measured.is_ready)
        help_text = "Holds that expire soon although nobody has claimed them."
        yield gauge("reserver_expiring_reservations", help_text, measured.expiring)
        help_text = (
            "Pods that were refused because of what is held for others, or for want of their seat."
        )
        yield gauge("reserver_waiting_pods", help_text, len(measured.state.waiting))
        help_text = (
            "Objects, entries and calls passed over because of a fault in reserver, by component."
        )
        counts = [((component,), faults[component]) for component in get_args(Component)]
        yield counter("reserver_quarantined", help_text, counts, ("component",))
        yield from self._families()
