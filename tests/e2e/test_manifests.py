"""The manifests as kubectl renders them, judged by the real API server."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hack.controlplane.build import bin_dir, versions
from hack.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2] / "scheduler-config"


@pytest.mark.parametrize("name", ["base", "standby"])
@pytest.mark.usefixtures("api")  # Has made the namespace, without which a dry run finds none.
def test_the_api_server_takes_them(control_plane: ControlPlane, name: str) -> None:
    kubectl = bin_dir(versions()[-1]) / "kubectl"
    command = [str(kubectl), "--kubeconfig", str(control_plane.kubeconfig), "apply"]
    flags = ["--dry-run=server", "--validate=strict", "--server-side", "-k", str(ROOT / name)]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"deployment.apps/reserver{'-scheduler' if name == 'base' else ''}" in done.stdout
