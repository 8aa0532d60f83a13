"""Whoever reads the metrics all the time takes a tenth of it."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reserver.extender.exposition import Exposition


class Slow(Collector):
    """A second's work for each reading."""

    def __init__(self) -> None:
        self.now = 0.0
        self.read = 0

    def collect(self) -> Iterator[GaugeMetricFamily]:
        self.now += 1
        self.read += 1
        yield GaugeMetricFamily("read", "How often.", value=self.read)


def test_the_text_is_made_again_once_the_last_one_has_cost_a_tenth_of_the_time() -> None:
    slow, registry = Slow(), CollectorRegistry()
    registry.register(slow)
    slow.read, slow.now = 0, 100.0
    exposition = Exposition(registry, clock=lambda: slow.now)
    for _ in range(1000):
        assert b"read 1.0" in exposition.text()
    slow.now = 109.9
    assert b"read 1.0" in exposition.text()
    slow.now = 110.0
    assert b"read 2.0" in exposition.text()
    assert slow.read == 2
