"""A client that reads the metrics all the time takes a tenth of the CPU."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reserver.extender.metrics import Exposition


class Slow(Collector):
    """Work of one second for each reading."""

    def __init__(self) -> None:
        self.now = 0.0
        self.read = 0

    def collect(self) -> Iterator[GaugeMetricFamily]:
        self.now += 1
        self.read += 1
        yield GaugeMetricFamily("read", "How often.", value=self.read)


async def test_the_text_is_made_again_once_the_last_one_has_cost_a_tenth_of_the_time() -> None:
    slow, registry = Slow(), CollectorRegistry()
    registry.register(slow)
    slow.read, slow.now = 0, 100.0
    exposition = Exposition(registry, clock=lambda: slow.now)
    for _ in range(1000):
        assert b"read 1.0" in await exposition.text()
    slow.now = 109.9
    assert b"read 1.0" in await exposition.text()
    slow.now = 110.0
    assert b"read 2.0" in await exposition.text()
    assert slow.read == 2


async def test_who_leaves_does_not_have_the_text_begun_again() -> None:
    begun, go_on = 0, asyncio.Event()

    async def survey() -> None:
        nonlocal begun
        begun += 1
        await go_on.wait()

    exposition = Exposition(CollectorRegistry(), survey)
    for _ in range(5):
        leaving = asyncio.ensure_future(exposition.text())
        await asyncio.sleep(0)
        leaving.cancel()
    staying = asyncio.ensure_future(exposition.text())
    go_on.set()
    assert await staying == b""
    assert begun == 1
