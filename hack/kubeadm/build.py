"""Builds kubeadm, once (a minute)."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.controlplane.build import BuildError
from hack.go_tool import GoTool

KUBEADM = GoTool(
    name="kubeadm",
    package="k8s.io/kubernetes/cmd/kubeadm",
    folder=Path(__file__).parent,
    least_go="1.26",
)

if __name__ == "__main__":
    try:
        print(KUBEADM.build())
    except BuildError as exc:
        sys.exit(str(exc))
