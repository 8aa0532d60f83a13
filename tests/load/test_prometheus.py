"""`reserver rebalance run` by load that a real Prometheus has recorded, on a real control plane.

Building Prometheus takes minutes, so this is a step of `make release-check`, not of CI.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.prometheus.scraping import scraping
from hack.reserver_process import wait_for
from reserver.errors import LoadUnknown
from reserver.kube.rebalance.prometheus import Prometheus, queries_for

STEP_S, MINUTES = 15, 10
CORES = {"worker-1": 7.2, "worker-2": 0.4}
"""What the nodes of eight cores use."""

PODS = {"web-0": 1.0, "web-1": 0.5}
"""What pods on worker-1 use."""


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
        create_nodes(plane.kubeconfig, 2, cpu="8")
        api: Any = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
        for name in PODS:
            spec = {"nodeName": "worker-1", "containers": [{"name": "main", "image": "none"}]}
            evictable = {"descheduler.alpha.kubernetes.io/evict": "true"}
            metadata = {"name": name, "annotations": evictable}
            api.create_namespaced_pod("default", {"metadata": metadata, "spec": spec})
        run(plane.kubeconfig, tmp_path / "policy.yaml", prometheus)
        wait_for(
            lambda: not _is_there(api, "web-0"),
            "the pod that relieves the node is gone",
        )
        assert _is_there(api, "web-1")


def _is_there(api: Any, name: str) -> bool:
    pods = api.list_namespaced_pod("default").items
    return name in {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None}


def run(kubeconfig: Path, file: Path, url: str) -> None:
    args = {
        "lowThresholds": {"cpu": 40},
        "highThresholds": {"cpu": 80},
        "anomalyCondition": {"consecutiveAbnormalities": 1},
        "metricsUtilization": {"source": "Prometheus"},
    }
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [{"source": "Prometheus", "prometheus": {"url": url}}],
        "profiles": [
            {
                "name": "load",
                "pluginConfig": [{"name": "LowNodeLoad", "args": args}],
                "plugins": {"balance": {"enabled": ["LowNodeLoad"]}},
            }
        ],
    }
    file.write_text(yaml.safe_dump(policy))
    command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
    command += ["--kubeconfig", str(kubeconfig), "--policy-config-file", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 pods evicted, 0 could not be"), done.stdout + done.stderr
