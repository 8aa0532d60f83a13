"""A program written in Go, built once from a folder: what its go.mod and go.sum pin, its source."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hack.controlplane.build import HOME, BuildError, find_go


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program.

    Attributes:
        name: of the program.
        package: what to build.
        folder: where go.mod and go.sum are.
        least_go: the version of Go that it takes.
        tags: of the build, separated by commas.
    """

    name: str
    package: str
    folder: Path
    least_go: str
    tags: str = ""

    @property
    def binary(self) -> Path:
        """Where the binary is, or would be: other pins, or another source, have another place."""
        sources = [self.folder / "go.mod", self.folder / "go.sum"]
        sources += sorted(self.folder.glob("*.go"))
        digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
        return HOME / f"{self.name}-{digest[:12]}"

    def build(self) -> Path:
        """Build what is missing, and return the binary.

        Raises:
            BuildError: no usable Go, a failed download, or a failed compilation.
        """
        target = self.binary
        if target.is_file():
            return target
        HOME.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        # `local`: a toolchain that Go would fetch for itself is not the one that was checked.
        env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        go = str(find_go(self.least_go))
        command = [go, "build", "-trimpath", "-tags", self.tags, "-o", str(partial), self.package]
        print(f"building {self.name}", flush=True)
        made = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise BuildError(f"{self.name} cannot be built: {made.stderr[-2000:]}")
        partial.rename(target)
        return target
