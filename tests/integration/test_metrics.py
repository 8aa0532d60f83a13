"""What /metrics tells is what the reference, the dashboard and the alerts speak of."""

from __future__ import annotations

import re
from pathlib import Path

import aiohttp
import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hack.dashboard import queries
from reserver import app
from reserver.rebalance.metrics import DeschedulingMetrics
from reserver.settings.serve import Settings
from reserver_demo.apiserver import deletion, resources, server
from reserver_demo.cluster import EmbeddedCluster

ROOT = Path(__file__).parents[2]
RULES = (ROOT / "monitoring/rules.yaml").read_text()
_ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)
_PARTS = ("_bucket", "_count", "_sum")


def documented() -> dict[str, set[str]]:
    """Return the labels of each metric that the reference names."""
    section = (ROOT / "docs/monitoring.md").read_text().split("\n## ")[1]
    return {
        name: set(filter(None, labels.split(",")))
        for row in _ROW.findall(section)
        for name, labels in re.findall(r"`(\w+)(?:\{([\w,]*)\})?`", row)
    }


BUFFERS = {
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
"""What the embedded API server needs of the CRD that autoscalers bring."""


@pytest.fixture
async def exposed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, set[str]]:
    """Return the labels of each metric that a Reserver exposes that serves all there is.

    Those of metrics without a sample yet are unknown, and left to the reference.
    """
    known_too = (*resources.RESOURCES, resources._custom(BUFFERS))
    for module in (server, deletion):
        monkeypatch.setattr(module, "RESOURCES", known_too)
    async with EmbeddedCluster() as cluster, aiohttp.ClientSession() as session:
        await cluster.create_node("worker-1")
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig",
            http_port=0,
            grpc_address=("127.0.0.1", 0),
            webhook_address=("127.0.0.1", 0),
            pod_moves=True,
            keep_held_nodes=True,
            capacity_buffers=True,
        )
        async with app.running(settings) as running:
            while True:
                async with session.get(f"{running.url}/metrics") as answer:
                    served = await answer.text()
                if "reserver_resources_held{" in served:  # The node has been listed.
                    break
    served += generate_latest(DeschedulingMetrics().registry).decode()
    found: dict[str, set[str]] = {}
    known = documented()
    for family in text_string_to_metric_families(served):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = [set(sample.labels) - {"le"} for sample in family.samples]
        found[name] = labels[0] if labels else known.get(name, set())
    return found


async def test_the_reference_names_all_metrics_with_their_labels_and_no_others(
    exposed: dict[str, set[str]],
) -> None:
    assert documented() == exposed


async def test_dashboard_and_alerts_ask_for_metrics_that_there_are(
    exposed: dict[str, set[str]],
) -> None:
    rules = [
        rule["expr"] for group in yaml.safe_load(RULES)["spec"]["groups"] for rule in group["rules"]
    ]
    asked = re.findall(
        r"\b(?:reserver|descheduler|process)_\w+", " ".join([*queries().values(), *rules])
    )
    names = {_family(name) for name in asked}
    assert len(names) > len(exposed) / 2
    assert names <= exposed.keys()


def _family(name: str) -> str:
    """Return whose bucket, count or sum it is."""
    return next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)


async def test_all_that_is_exposed_is_on_the_dashboard_or_in_an_alert_or_left_out_on_purpose(
    exposed: dict[str, set[str]],
) -> None:
    shown = " ".join(queries().values()) + RULES
    left = {name for name in exposed if not re.search(rf"\b{name}(_bucket|_count)?\b", shown)}
    assert left == {
        "descheduler_build_info",
        "descheduler_pods_evicted",  # The older names of others.
        "descheduler_descheduler_loop_duration_seconds",
        "descheduler_descheduler_strategy_duration_seconds",
        "process_max_fds",
        "process_virtual_memory_bytes",
        "reserver_event_loop_held_seconds",  # Deprecated names.
        "reserver_store_edits_lost_total",
        "reserver_watch_current",
    }
