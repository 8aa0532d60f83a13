"""The real kubeadm patches kube-scheduler's static pod as docs/install.md says.

Building kubeadm takes a minute, so this is a step of `make release-check`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.go_tool import HELM, KUBEADM
from tests.e2e.apart.test_install import CLUSTER_CONFIGURATION, ON_NODES, STATIC_POD
from tests.installing import PAGE, ROOT, containers
from tests.pages import blocks

pytestmark = pytest.mark.timeout(900)

PATCHES = "/etc/kubernetes/patches"
EXTRA = "scheduler: {extraArgs: [{name: v, value: '3'}]}\n"
"""A ClusterConfiguration with settings of an administrator."""


def written(config: str, folder: Path) -> Path:
    """Have kubeadm write kube-scheduler's manifest into a folder."""
    (folder / "kubeadm.yaml").write_text(config)
    kubeadm = str(KUBEADM.build())
    subprocess.run([kubeadm, "config", "validate", "--config=kubeadm.yaml"], cwd=folder, check=True)
    what = ("init", "phase", "control-plane", "scheduler", "--config=kubeadm.yaml", "--dry-run")
    # It says what it would do, and writes the manifest where it is told instead.
    where = {**os.environ, "KUBEADM_INIT_DRYRUN_DIR": str(folder / "out")}
    subprocess.run([kubeadm, *what], cwd=folder, env=where, check=True)
    return folder / "out/kube-scheduler.yaml"


def chart_patch() -> str:
    """Return the patch that the chart renders."""
    where = ("charts/reserver", "--namespace=reserver-system", "--set=mode=static-pod")
    command = [str(HELM.build()), "template", "reserver", *where]
    rendered = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    objects: list[dict[str, Any]] = [each for each in yaml.safe_load_all(rendered) if each]
    (found,) = (each for each in objects if each["metadata"]["name"] == "reserver-static-pod")
    return str(found["data"]["patch.yaml"])


def test_the_manifest_of_the_other_tests_is_what_kubeadm_writes(tmp_path: Path) -> None:
    ours = STATIC_POD.read_text().partition("\n")[2]
    assert written(CLUSTER_CONFIGURATION, tmp_path).read_text() == ours


def test_kubeadm_adds_the_sidecar_and_keeps_what_is_configured(tmp_path: Path) -> None:
    files = dict(each for each in blocks(str(PAGE)) if isinstance(each, tuple))
    assert PATCHES in files["patches.yaml"]
    (tmp_path / "kube-scheduler+json.yaml").write_text(chart_patch())
    config = CLUSTER_CONFIGURATION + EXTRA + files["patches.yaml"]
    manifest = written(config.replace(PATCHES, str(tmp_path)), tmp_path)
    found = containers(yaml.safe_load(manifest.read_text())["spec"])
    assert found.keys() == {"reserver", "kube-scheduler"}
    command = found["kube-scheduler"]["command"]
    assert {f"--config={ON_NODES}/kube-scheduler.yaml", "--v=3"} <= set(command)
    assert found["reserver"]["restartPolicy"] == "Always"
