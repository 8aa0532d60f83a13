"""`reserver rebalance run` by load that a real Prometheus has recorded, on a real control plane.

Building Prometheus takes minutes, so this is a step of `make release-check`, not of CI.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.prometheus.scraping import scraping
from reserver.errors import LoadUnknown
from reserver.rebalance.prometheus import Prometheus, queries_for
from tests.load.loads import CORES, PODS, fill, relieve

STEP_S, MINUTES = 15, 10


def recorded(now: float) -> str:
    """Return what node-exporter and cAdvisor would have said in the last minutes, in order."""
    lines = []
    for at in range(int(now) - MINUTES * 60, int(now), STEP_S):
        stamp, ran = at * 1000, at - int(now) + MINUTES * 60
        for node, cores in CORES.items():
            where = f'instance="{node}:9100",job="node"'
            for mode, share in (("user", 0.75), ("system", 0.25), ("idle", 3.0)):
                used = 1e5 + cores * share * ran
                lines.append(
                    f'node_cpu_seconds_total{{{where},cpu="0",mode="{mode}"}} {used} {stamp}'
                )
            lines.append(f'node_uname_info{{{where},nodename="{node}"}} 1 {stamp}')
            lines.append(f"node_memory_MemTotal_bytes{{{where}}} 8589934592 {stamp}")
            lines.append(f"node_memory_MemAvailable_bytes{{{where}}} 4294967296 {stamp}")
        for pod, cores in PODS.items():
            where = f'node="worker-1",namespace="default",pod="{pod}",container="main"'
            used = 100 + cores * ran
            lines.append(f"container_cpu_usage_seconds_total{{{where}}} {used} {stamp}")
            lines.append(f"container_memory_working_set_bytes{{{where}}} 1048576 {stamp}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of a Prometheus that has scraped the recorded series, once."""
    folder = tmp_path_factory.mktemp("prometheus")
    text = recorded(time.time())

    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as exporter:
        threading.Thread(target=exporter.serve_forever, daemon=True).start()
        try:
            with scraping(folder, f"127.0.0.1:{exporter.server_address[1]}") as url:
                yield url
        finally:
            exporter.shutdown()


async def no_token() -> str:
    return ""


async def test_our_queries_find_what_node_exporter_and_cadvisor_have_recorded(
    prometheus: str,
) -> None:
    await _has_scraped(prometheus)
    async with Prometheus(prometheus, no_token) as asked:
        readings = await asked.read(frozenset(CORES), queries_for(("cpu", "memory"), {}))
    for node, cores in CORES.items():
        usage = readings.nodes[node].usage
        assert usage["cpu"] == pytest.approx(cores * 1000, rel=0.1)
        assert usage["memory"] == 2**32
    used = {name.name: each.usage["cpu"] for name, each in readings.pods.items()}
    assert used == pytest.approx({pod: cores * 1000 for pod, cores in PODS.items()}, rel=0.1)


async def _has_scraped(url: str) -> None:
    for _ in range(150):
        try:
            async with Prometheus(url, no_token) as asked:
                read = await asked.read(frozenset(CORES), queries_for(("cpu",), {}))
            if len(read.nodes) == len(CORES) and len(read.pods) == len(PODS):
                return
        except LoadUnknown:
            pass
        await asyncio.sleep(0.2)
    raise TimeoutError("Prometheus has not scraped what was recorded")


async def test_pods_leave_the_node_that_prometheus_says_is_hot(
    prometheus: str, tmp_path: Path
) -> None:
    await _has_scraped(prometheus)
    with ControlPlane() as plane:
        provider = {"source": "Prometheus", "prometheus": {"url": prometheus}}
        relieve(plane, fill(plane), tmp_path / "policy.yaml", provider)
