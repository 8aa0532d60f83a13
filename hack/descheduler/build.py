"""Builds the program of this folder, which answers with upstream's own code (minutes, once)."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.controlplane.build import BuildError
from hack.go_tool import GoTool

DESCHEDULER = GoTool(
    name="descheduler",
    package=".",
    folder=Path(__file__).parent,
    least_go="1.26.0",
)

if __name__ == "__main__":
    try:
        print(DESCHEDULER.build())
    except BuildError as exc:
        sys.exit(str(exc))
