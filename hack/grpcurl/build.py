"""Builds grpcurl from the Go module that go.mod and go.sum pin, once (a minute or two)."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from hack.controlplane.build import HOME, BuildError, find_go

HERE = Path(__file__).parent
PACKAGE = "github.com/fullstorydev/grpcurl/cmd/grpcurl"
LEAST_GO = "1.24"


def binary() -> Path:
    """Return where the binary is, or would be: another pin has another place."""
    pins = b"".join((HERE / name).read_bytes() for name in ("go.mod", "go.sum"))
    return HOME / f"grpcurl-{hashlib.sha256(pins).hexdigest()[:12]}"


def build() -> Path:
    """Build what is missing, and return the binary.

    Raises:
        BuildError: no usable Go, a failed download, or a failed compilation.
    """
    target = binary()
    if target.is_file():
        return target
    HOME.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    # `local`: a toolchain that Go would fetch for itself is not the one that was checked.
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    command = [str(find_go(LEAST_GO)), "build", "-trimpath", "-o", str(partial), PACKAGE]
    print("building grpcurl", flush=True)
    made = subprocess.run(command, cwd=HERE, env=env, capture_output=True, text=True, check=False)
    if made.returncode:
        raise BuildError(f"grpcurl cannot be built: {made.stderr[-2000:]}")
    partial.rename(target)
    return target


if __name__ == "__main__":
    try:
        print(build())
    except BuildError as exc:
        sys.exit(str(exc))
