"""Writes docs/metrics-reference.md from what Reserver exposes.

Of metrics without a sample, the labels stay as the page has them.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from reserver import app
from reserver.process import logs
from reserver.rebalance.metrics import DeschedulingMetrics
from reserver.settings.serve import LogLevel, Settings
from reserver_demo.apiserver import deletion, resources, server
from reserver_demo.cluster import EmbeddedCluster

PAGE = Path(__file__).parents[1] / "docs/metrics-reference.md"
BUFFERS: dict[str, Any] = {
    "spec": {
        "group": "autoscaling.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "CapacityBuffer", "plural": "capacitybuffers"},
        "versions": [
            {
                "name": "v1beta1",
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {}}},
                "subresources": {"status": {}},
            }
        ],
    }
}
"""The fields of the autoscalers' CRD that the embedded API server needs."""

_HEAD = """\
# Metrics

Written by `make metrics-reference`. [Monitoring](monitoring.md) has dashboard and alerts.
"""
_ROW = re.compile(r"^\| `(\w+)(?:\{([\w,]*)\})?` \|", re.MULTILINE)


def documented() -> dict[str, set[str]]:
    """Return the labels of each metric that the page names."""
    rows = _ROW.findall(PAGE.read_text())
    return {name: set(filter(None, labels.split(","))) for name, labels in rows}


def exposed(text: str) -> dict[str, set[str]]:
    """Return the labels of each metric; the page's labels, if the metric has no sample."""
    known = documented()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        labels = [set(sample.labels) - {"le"} for sample in family.samples]
        found[_name(family)] = labels[0] if labels else known.get(_name(family), set())
    return found


def page(served: str) -> str:
    """Return the page, as it should be."""
    parts = [_HEAD]
    for program, text in (("serve", served), ("rebalance run", rebalancing())):
        rows = ["| metric | type | meaning |", "|---|---|---|", *_rows(text)]
        parts.append(f"## `reserver {program}`\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def rebalancing() -> str:
    """Return what rebalancing exposes."""
    return generate_latest(DeschedulingMetrics().registry).decode()


def _rows(text: str) -> Iterator[str]:
    all_labels = exposed(text)
    for family in sorted(text_string_to_metric_families(text), key=_name):
        labels = ",".join(sorted(all_labels[_name(family)]))
        meaning = family.documentation.replace("|", "\\|")
        name = f"{_name(family)}{f'{{{labels}}}' if labels else ''}"
        yield f"| `{name}` | {family.type} | {meaning} |"


def _name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


async def served() -> str:
    """Return the metrics of a Reserver with all features, on a cluster of one node."""
    known_too = (*resources.RESOURCES, resources._custom(BUFFERS))  # noqa: SLF001 - no CRD of it is served
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(server, "RESOURCES", known_too),
        patch.object(deletion, "RESOURCES", known_too),
    ):
        async with EmbeddedCluster() as cluster, aiohttp.ClientSession() as session:
            await cluster.create_node("worker-1")
            cluster.write_kubeconfig(Path(folder) / "kubeconfig")
            settings = Settings(
                kubeconfig=Path(folder) / "kubeconfig",
                http_port=0,
                grpc_address=("127.0.0.1", 0),
                webhook_address=("127.0.0.1", 0),
                pod_moves=True,
                maintenance_windows=True,
                keep_held_nodes=True,
                capacity_buffers=True,
            )
            async with app.running(settings) as running:
                while True:
                    async with session.get(f"{running.url}/metrics") as answer:
                        text = await answer.text()
                    if "reserver_resources_held{" in text:  # The node has been listed.
                        return text


def main() -> None:
    """Write the page."""
    logs.configure(LogLevel.ERROR)
    PAGE.write_text(page(asyncio.run(served())))


if __name__ == "__main__":
    main()
