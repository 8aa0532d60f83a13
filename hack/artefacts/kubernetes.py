"""The installable files: the chart's archive, and one file of manifests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hack.artefacts.packing import packed
from hack.controlplane.build import bin_dir

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/reserver"
_REPOSITORY = "  repository: reserver\n"
_HEAD = """\
# Reserver {version}: a second kube-scheduler with Reserver as its sidecar (docs/install.md).
#
#   kubectl apply --server-side -f install.yaml
#
# The images below are {image}:{version} and a kube-scheduler that may not be newer than your
# API server: change its tag to your cluster's version.
"""


def chart(image: str) -> bytes:
    """Return the chart as `helm install` takes it, its links as the files that they lead to."""
    ignored = _lines(CHART / ".helmignore")
    found = (
        Path(folder, name)
        for folder, _, names in os.walk(CHART, followlinks=True)
        for name in names
        if name not in ignored and str(Path(folder, name).relative_to(CHART)) not in ignored
    )
    files = {f"reserver/{each.relative_to(CHART)}": each.read_bytes() for each in sorted(found)}
    values = files["reserver/values.yaml"].decode()
    if values.count(_REPOSITORY) != 1:
        raise ValueError(f"values.yaml has no single line {_REPOSITORY!r}")
    named = values.replace(_REPOSITORY, f"  repository: {image}\n")
    return packed(files | {"reserver/values.yaml": named.encode()})


def manifests(image: str, version: str) -> str:
    """Return what `kubectl apply -k scheduler-config/base` applies, with this version's image."""
    built = subprocess.run(
        [str(bin_dir() / "kubectl"), "kustomize", str(ROOT / "scheduler-config/base")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    if built.count(" image: reserver:dev\n") != 1:
        raise ValueError("the manifests have no single image reserver:dev")
    named = built.replace(" image: reserver:dev\n", f" image: {image}:{version}\n")
    return _HEAD.format(version=version, image=image) + named


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
