"""Builds grpcurl, once (a minute or two)."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.controlplane.build import BuildError
from hack.go_tool import GoTool

GRPCURL = GoTool(
    name="grpcurl",
    package="github.com/fullstorydev/grpcurl/cmd/grpcurl",
    folder=Path(__file__).parent,
    least_go="1.24",
)

if __name__ == "__main__":
    try:
        print(GRPCURL.build())
    except BuildError as exc:
        sys.exit(str(exc))
