"""docs/compatibility.md says of this version of Kubernetes what its programs say."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest

from hack.controlplane.build import chosen
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl

pytestmark = pytest.mark.controlplane

PAGE = Path(__file__).parents[2] / "docs/compatibility.md"


def rows() -> list[dict[str, str]]:
    """Return what the page's tables say of the version: each by the row's first cell."""
    tables = re.findall(r"(?:^\|.*\n)+", PAGE.read_text(), re.MULTILINE)
    found = []
    for table in tables:
        cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
        (column,) = (
            number for number, cell in enumerate(cells[0]) if f"{cell}.".startswith(f"{chosen()}.")
        )
        found.append({row[0]: row[column] for row in cells})
    return found


def test_its_programs_are_of_the_versions_that_the_page_names(control_plane: ControlPlane) -> None:
    programs, _ = rows()
    server = json.loads(kubectl(control_plane.kubeconfig, "get", "--raw", "/version"))
    assert server["gitVersion"] == f"v{programs['']}"
    with urllib.request.urlopen(f"{control_plane.etcd_url}/version", timeout=30) as answer:
        assert json.load(answer)["etcdserver"] == programs["etcd"]


def test_its_feature_gates_are_as_the_page_says(control_plane: ControlPlane) -> None:
    _, gates = rows()
    metrics = kubectl(control_plane.kubeconfig, "get", "--raw", "/metrics")
    feature = r'^kubernetes_feature_enabled\{name="(\w+)",stage="(\w*)"\} (\d)$'
    real = {
        name: "GA" if not stage else f"{stage.lower()}, {'on' if on == '1' else 'off'}"
        for name, stage, on in re.findall(feature, metrics, re.MULTILINE)
    }
    said = {name.split("`")[1]: state for name, state in gates.items() if "`" in name}
    assert len(said) >= 5
    assert said == {name: real[name] for name in said}
