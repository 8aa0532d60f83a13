"""Programs in Go, each built once from a folder: what its go.mod and go.sum pin, and its source.

    python -m hack.go_tool grpcurl helm

builds them (minutes each, once) and prints where they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hack.controlplane.build import HOME, BuildError, find_go

_HACK = Path(__file__).parent
_GO = re.compile(r"^go ([\d.]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program.

    Attributes:
        name: of the program.
        package: what to build.
        folder: where go.mod and go.sum are, below hack/.
        tags: of the build, separated by commas.
        tests: whether it is the package's tests, as a program.
    """

    name: str
    package: str
    folder: str | Path
    tags: str = ""
    tests: bool = False

    @property
    def binary(self) -> Path:
        """The path of the binary, which depends on the pins and the source."""
        sources = [self._folder / "go.mod", self._folder / "go.sum"]
        sources += sorted(self._folder.glob("*.go"))
        digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
        return HOME / f"{self.name}-{digest[:12]}"

    def build(self) -> Path:
        """Build the binary if it is missing, and return its path.

        Raises:
            BuildError: no usable Go, a failed download, or a failed compilation.
        """
        target = self.binary
        if target.is_file():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        print(f"building {self.name}", flush=True)
        verb = ("test", "-c", "-vet=off", "-ldflags=-s -w") if self.tests else ("build",)
        self._go(*verb, "-trimpath", "-tags", self.tags, "-o", str(partial), self.package)
        partial.rename(target)
        return target

    def source(self, module: str) -> Path:
        """Return the folder of the source of a module that it is made of.

        Raises:
            BuildError: no usable Go, or a failed download.
        """
        return Path(json.loads(self._go("mod", "download", "-json", module))["Dir"])

    @property
    def _folder(self) -> Path:
        return _HACK / self.folder

    def _go(self, *arguments: str) -> str:
        least = _GO.search((self._folder / "go.mod").read_text())
        if least is None:
            raise BuildError(f"{self._folder / 'go.mod'} has no line that begins with go")
        # `local`: a toolchain that Go would fetch for itself is not the one that was checked.
        env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        command = [str(find_go(least[1])), *arguments]
        made = subprocess.run(
            command, cwd=self._folder, env=env, capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise BuildError(f"{self.name} cannot be built: {made.stderr[-2000:]}")
        return made.stdout


ACTIONLINT = GoTool("actionlint", "github.com/rhysd/actionlint/cmd/actionlint", "actionlint")
BUF = GoTool("buf", "github.com/bufbuild/buf/cmd/buf", "buf")
DESCHEDULER = GoTool("descheduler", ".", "descheduler")
# A gRPC client that nobody here wrote.
GRPCURL = GoTool("grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl", "grpcurl")
HELM = GoTool("helm", "helm.sh/helm/v4/cmd/helm", "helm")
KARPENTER = GoTool("karpenter", "sigs.k8s.io/karpenter/kwok", "karpenter")
KUBEADM = GoTool("kubeadm", "k8s.io/kubernetes/cmd/kubeadm", "kubeadm")
METRICS_SERVER = GoTool(
    "metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server", "metrics_server"
)
PLAIN_EXTENDER = GoTool("plain-extender", ".", "bench/throughput/extender")
_PROMETHEUS = "github.com/prometheus/prometheus/cmd"
_NO_CLOUDS = "remove_all_sd"  # Without what discovers targets in clouds.
PROMETHEUS = GoTool("prometheus", f"{_PROMETHEUS}/prometheus", "prometheus", _NO_CLOUDS)
PROMTOOL = GoTool("promtool", f"{_PROMETHEUS}/promtool", "prometheus", _NO_CLOUDS)
TYPESCRIPT = GoTool("tsgo", "github.com/microsoft/typescript-go/cmd/tsgo", "typescript")

TOOLS = {
    tool.name: tool
    for tool in (
        *(ACTIONLINT, BUF, DESCHEDULER, GRPCURL, HELM, KARPENTER, KUBEADM),
        *(METRICS_SERVER, PLAIN_EXTENDER, PROMETHEUS, PROMTOOL, TYPESCRIPT),
    )
}


def main() -> int:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tools", nargs="+", choices=TOOLS, metavar="TOOL", help=", ".join(TOOLS))
    try:
        for name in parser.parse_args().tools:
            print(TOOLS[name].build())
    except BuildError as exc:
        sys.exit(str(exc))
    return 0


if __name__ == "__main__":
    sys.exit(main())
