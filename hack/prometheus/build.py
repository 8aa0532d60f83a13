"""Builds Prometheus and promtool, once (minutes), without what discovers targets in clouds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hack.controlplane.build import BuildError
from hack.go_tool import GoTool

PROMETHEUS = GoTool(
    name="prometheus",
    package="github.com/prometheus/prometheus/cmd/prometheus",
    folder=Path(__file__).parent,
    least_go="1.26",
    tags="remove_all_sd",
)
PROMTOOL = replace(
    PROMETHEUS,
    name="promtool",
    package="github.com/prometheus/prometheus/cmd/promtool",
)

if __name__ == "__main__":
    try:
        print(PROMETHEUS.build(), PROMTOOL.build(), sep="\n")
    except BuildError as exc:
        sys.exit(str(exc))
