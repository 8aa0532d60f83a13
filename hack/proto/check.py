"""Lints the contract, and compares it with the last released one.

    python -m hack.proto.check [--release]

buf does both, built once from its Go module (two minutes). The last released contract is
proto/baseline.binpb; `--release` replaces it by the current one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from hack.controlplane.build import BuildError
from hack.go_tool import BUF
from hack.proto.generate import PROTO

BASELINE = PROTO / "baseline.binpb"


def check() -> int:
    """Print the problems; return an exit status."""
    lint = _buf("lint", str(PROTO))
    breaking = _buf("breaking", str(PROTO), "--against", str(BASELINE))
    return lint or breaking


def release() -> int:
    """Take the contract as it is for the one to compare with; return an exit status."""
    return _buf("build", str(PROTO), "--exclude-source-info", "-o", str(BASELINE))


def _buf(*arguments: str) -> int:
    return subprocess.run([BUF.build(), *arguments], check=False).returncode


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--release", action="store_true", help="make it the one to compare with")
    try:
        return release() if parser.parse_args().release else check()
    except BuildError as exc:
        print(exc, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
