"""Builds Karpenter with its kwok provider, once (minutes), and finds its source.

The Cluster Autoscaler, which reads the same CapacityBuffers, is not here: the Go module proxy does
not have its module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from hack.controlplane.build import BuildError, find_go
from hack.go_tool import GoTool

KARPENTER = GoTool(
    name="karpenter",
    package="sigs.k8s.io/karpenter/kwok",
    folder=Path(__file__).parent,
    least_go="1.26.6",
)


def source() -> Path:
    """Return the folder of Karpenter's source; its CRDs, CapacityBuffers among them, are there.

    Raises:
        BuildError: no usable Go, or a failed download.
    """
    env = os.environ | {"GOTOOLCHAIN": "local", "GOWORK": "off"}
    command = [str(find_go(KARPENTER.least_go)), "mod", "download", "-json"]
    found = subprocess.run(
        [*command, "sigs.k8s.io/karpenter"],
        cwd=KARPENTER.folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise BuildError(f"Karpenter's module cannot be had: {found.stderr[-2000:]}")
    return Path(json.loads(found.stdout)["Dir"])


if __name__ == "__main__":
    try:
        print(KARPENTER.build(), source(), sep="\n")
    except BuildError as exc:
        sys.exit(str(exc))
