"""Builds metrics-server, once (a minute or two)."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.controlplane.build import BuildError
from hack.go_tool import GoTool

METRICS_SERVER = GoTool(
    name="metrics-server",
    package="sigs.k8s.io/metrics-server/cmd/metrics-server",
    folder=Path(__file__).parent,
    least_go="1.26",
)

if __name__ == "__main__":
    try:
        print(METRICS_SERVER.build())
    except BuildError as exc:
        sys.exit(str(exc))
