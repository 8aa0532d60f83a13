"""Metrics of rebalancing, under the names of kubernetes-sigs/descheduler.

Dashboards and alerts of the descheduler keep working (metrics/metrics.go there). Metrics without a
name there begin with ``reserver_``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from reserver import DISTRIBUTION
from reserver.extender.metrics import Exposition
from reserver.http.message import HttpRequest, HttpResponse, Paths, text
from reserver.rebalance.outcomes import MoveOutcome

_STRATEGY_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100)
_ROUND_SECONDS = (*_STRATEGY_SECONDS, 250, 500)
_DEPRECATED = "descheduler_"
"""Before the name that a duration had up to descheduler 0.33, which 0.36 exposes, too."""


class DeschedulingMetrics:
    """The metrics of one process that rebalances.

    Attributes:
        registry: what to expose.
        policy_broken: 1 while the policy file is broken and the last good one is in force.
    """

    def __init__(self) -> None:
        """Begin to count."""
        disable_created_metrics()  # A time series more for each, which nobody reads.
        self.registry = CollectorRegistry()
        count = partial(Counter, registry=self.registry)
        self._evicted = count(
            "descheduler_pods_evicted",
            "Number of total evicted pods, by the result, by the strategy, by the namespace, by "
            "the node name. 'error' result means a pod could not be evicted",
            ("result", "strategy", "profile", "namespace", "node"),
        )
        self._round_seconds = self._durations(
            "loop_duration_seconds", "Time taken to complete a full descheduling cycle"
        )
        self._strategy_seconds = self._durations(
            "strategy_duration_seconds",
            "Time taken to complete Each strategy of the descheduling operation",
            ("strategy", "profile"),
            _STRATEGY_SECONDS,
        )
        self.registry.register(_Deprecated(self._evicted))
        Gauge(
            "descheduler_build_info",
            "Build info about descheduler: here the version of reserver.",
            ("AppVersion", "DeschedulerVersion"),
            registry=self.registry,
        ).labels("reserver", version(DISTRIBUTION)).set(1)
        self._rounds = count(
            "reserver_rebalance_rounds",
            "Rounds of rebalancing by outcome; one that fails evicts nothing.",
            ("outcome",),
        )
        self._nodes = count(
            "reserver_rebalance_nodes",
            "Nodes whose emptying has ended, by outcome: emptied, or given back as a pod stays.",
            ("outcome",),
        )
        told = "1 while the policy file is broken and the last good one is in force."
        self.policy_broken = Gauge("reserver_rebalance_policy_broken", told, registry=self.registry)

    def count_move(self, outcome: MoveOutcome) -> None:
        """Count how a move ended."""
        move, result = outcome.move, outcome.result.value
        about = (move.strategy, move.profile, move.pod.namespace, move.source)
        self._evicted.labels(result, *about).inc()

    def count_node(self, outcome: str) -> None:
        """Count a node whose emptying has ended: ``emptied`` or ``given back``."""
        self._nodes.labels(outcome).inc()

    def count_round(self, outcome: str, seconds: float) -> None:
        """Count a round, ``done`` or ``failed``, and its seconds with the waits for budgets."""
        self._rounds.labels(outcome).inc()
        for histogram in self._round_seconds:
            histogram.observe(seconds)

    @contextmanager
    def time_strategy(self, profile: str, strategy: str) -> Iterator[None]:
        """Count how long a block took, which judges a strategy of a profile."""
        began = time.perf_counter()
        yield
        took_s = time.perf_counter() - began
        for histogram in self._strategy_seconds:
            histogram.labels(strategy, profile).observe(took_s)

    def _durations(
        self,
        name: str,
        documentation: str,
        labels: tuple[str, ...] = (),
        buckets: tuple[float, ...] = _ROUND_SECONDS,
    ) -> tuple[Histogram, ...]:
        """Return what counts durations, under the name of now and the deprecated one."""
        return tuple(
            Histogram(
                f"descheduler_{prefix}{name}",
                documentation,
                labels,
                buckets=buckets,
                registry=self.registry,
            )
            for prefix in ("", _DEPRECATED)
        )


class _Deprecated(Collector):
    """``descheduler_pods_evicted``, the former name of ``descheduler_pods_evicted_total``."""

    def __init__(self, evicted: Counter) -> None:
        self._evicted = evicted

    def collect(self) -> Iterator[Metric]:
        for family in self._evicted.collect():
            # As a counter its name would end in _total.
            shown = Metric(family.name, family.documentation, "untyped")
            for sample in family.samples:
                shown.add_sample(family.name, sample.labels, sample.value)
            yield shown


def health_paths(registry: CollectorRegistry) -> Paths:
    """Return who says that the process answers, and its metrics."""
    exposition = Exposition(registry)

    async def healthz(_: HttpRequest) -> HttpResponse:
        return text("ok\n")

    async def metrics(_: HttpRequest) -> HttpResponse:
        return HttpResponse(await exposition.text(), content_type=CONTENT_TYPE_LATEST)

    return {"/healthz": ("GET", healthz), "/metrics": ("GET", metrics)}
