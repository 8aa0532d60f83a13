"""What is measured of rebalancing, under the names of kubernetes-sigs/descheduler.

Its dashboards and alerts keep working (metrics/metrics.go there). What has no name there begins
with ``reserver_``.
"""

from __future__ import annotations

from importlib.metadata import version

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

from reserver.server.exposition import Exposition

_ROUND_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500)


class DeschedulingMetrics:
    """The metrics of one process that rebalances.

    Attributes:
        registry: what to expose.
        round_seconds: how long rounds take, with the waits for budgets.
        policy_broken: 1 while the policy file is broken and the last good one is in force.
    """

    def __init__(self) -> None:
        """Begin to count."""
        disable_created_metrics()  # A time series more for each, which nobody reads.
        self.registry = CollectorRegistry()
        self._evicted = Counter(
            "descheduler_pods_evicted",
            "Number of total evicted pods, by the result, by the strategy, by the namespace, by "
            "the node name. 'error' result means a pod could not be evicted",
            ("result", "strategy", "profile", "namespace", "node"),
            registry=self.registry,
        )
        self.round_seconds = Histogram(
            "descheduler_loop_duration_seconds",
            "Time taken to complete a full descheduling cycle",
            buckets=_ROUND_SECONDS,
            registry=self.registry,
        )
        Gauge(
            "descheduler_build_info",
            "Build info about descheduler: here the version of reserver.",
            ("AppVersion", "DeschedulerVersion"),
            registry=self.registry,
        ).labels("reserver", version("reserver")).set(1)
        self._rounds = Counter(
            "reserver_rebalance_rounds",
            "Rounds of rebalancing by outcome; one that fails evicts nothing.",
            ("outcome",),
            registry=self.registry,
        )
        self.policy_broken = Gauge(
            "reserver_rebalance_policy_broken",
            "1 while the policy file is broken and the last good one is in force.",
            registry=self.registry,
        )

    def count_eviction(
        self, result: str, strategy: str, profile: str, namespace: str, node: str
    ) -> None:
        """Count how an eviction ended."""
        self._evicted.labels(result, strategy, profile, namespace, node).inc()

    def count_round(self, outcome: str) -> None:
        """Count a round: ``done`` or ``failed``."""
        self._rounds.labels(outcome).inc()


def health_application(registry: CollectorRegistry) -> web.Application:
    """Return an application that says that the process answers, and its metrics."""
    exposition = Exposition(registry)

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=exposition.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
    return app
