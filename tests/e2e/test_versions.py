"""docs/compatibility.md says of this version of Kubernetes what its programs say, and do."""

from __future__ import annotations

import json
import re
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.bed.bed import SCHEDULER_CONFIG
from hack.controlplane.build import chosen
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.reserver_process import ReserverProcess
from tests.e2e.cluster import Corner

pytestmark = pytest.mark.controlplane

PAGE = Path(__file__).parents[2] / "docs/compatibility.md"
NO_SPREADING = {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
"""Pods that the default constraints would spread are never alike."""


def rows(title: str) -> dict[str, str]:
    """Return the version's cells in a table of the page, by the row's first cell."""
    (table,) = re.findall(rf"^\| *{title} \|.*\n(?:^\|.*\n)+", PAGE.read_text(), re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
    (column,) = (
        number for number, cell in enumerate(cells[0]) if f"{cell}.".startswith(f"{chosen()}.")
    )
    return {row[0]: row[column] for row in cells}


def test_its_programs_are_of_the_versions_that_the_page_names(control_plane: ControlPlane) -> None:
    programs = rows("Kubernetes")
    server = json.loads(kubectl(control_plane.kubeconfig, "get", "--raw", "/version"))
    assert server["gitVersion"] == f"v{programs['Kubernetes']}"
    with urllib.request.urlopen(f"{control_plane.etcd_url}/version", timeout=30) as answer:
        assert json.load(answer)["etcdserver"] == programs["etcd"]


def test_its_feature_gates_are_as_the_page_says(control_plane: ControlPlane) -> None:
    gates = rows("gate")
    metrics = kubectl(control_plane.kubeconfig, "get", "--raw", "/metrics")
    feature = r'^kubernetes_feature_enabled\{name="(\w+)",stage="(\w*)"\} (\d)$'
    real = {
        name: "GA" if not stage else f"{stage.lower()}, {'on' if on == '1' else 'off'}"
        for name, stage, on in re.findall(feature, metrics, re.MULTILINE)
    }
    said = {name.split("`")[1]: state for name, state in gates.items() if "`" in name}
    assert len(said) >= 5
    assert said == {name: real[name] for name in said}


def batching(plane: ControlPlane, corner: Corner, base: Path, port: int, *plugins: Any) -> Any:
    """Return what came of batching equal pods that each fill a node, by kube-scheduler's words.

    They are there before it starts, so that it takes one straight after the other.
    """
    name = f"{corner.name}-batching"
    rendered = yaml.safe_load(
        render_scheduler_config(base, kubeconfig=plane.kubeconfig, port=port, scheduler_name=name)
    )
    rendered["profiles"][0]["pluginConfig"] = list(plugins)
    config = plane.folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(rendered))
    pods = [f"equal-{number}" for number in range(len(corner.nodes))]
    for pod in pods:
        corner.create_pod(pod, {"cpu": "3"}, schedulerName=name)
    metrics = f"https://127.0.0.1:{plane.start_scheduler(config, name)}/metrics"
    try:
        assert {corner.wait_bound(pod) for pod in pods} == set(corner.nodes)
        headers = {"Authorization": f"Bearer {plane.token}"}
        request = urllib.request.Request(metrics, headers=headers)
        trusted = ssl.create_default_context(cafile=plane.ca_file)
        with urllib.request.urlopen(request, context=trusted, timeout=30) as answer:
            text = answer.read().decode()
    finally:
        plane.stop_scheduler(name)
    for pod in pods:
        corner.delete_pod(pod)
    attempts = rf'^scheduler_batch_attempts_total\{{profile="{name}",result="(\w+)"\}} (\d+)$'
    return {result: int(count) for result, count in re.findall(attempts, text, re.MULTILINE)}


def test_its_scheduler_batches_equal_pods_unless_it_spreads_them_or_has_an_extender(
    control_plane: ControlPlane, corner: Corner, reserver: ReserverProcess
) -> None:
    corner.add_nodes(8)
    shipped, port = SCHEDULER_CONFIG, reserver.port
    alone = batching(control_plane, corner, PLAIN_SCHEDULER, port, NO_SPREADING)
    assert alone["hint_used"] > 0
    assert batching(control_plane, corner, PLAIN_SCHEDULER, port) == {"no_hint": 8}
    assert batching(control_plane, corner, shipped, port, NO_SPREADING) == {"no_hint": 8}
