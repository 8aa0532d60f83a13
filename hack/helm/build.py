"""Builds Helm, once (two minutes)."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.controlplane.build import BuildError
from hack.go_tool import GoTool

HELM = GoTool(
    name="helm",
    package="helm.sh/helm/v4/cmd/helm",
    folder=Path(__file__).parent,
    least_go="1.26",
)

if __name__ == "__main__":
    try:
        print(HELM.build())
    except BuildError as exc:
        sys.exit(str(exc))
