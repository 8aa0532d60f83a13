"""Upstream's e2e tests as one program, built once a version: all that is run of it, unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.controlplane.build import HERE as CONTROL_PLANE
from hack.controlplane.build import HOME
from hack.go_tool import GoTool

PINS = Path(__file__).with_name("pins")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Some of upstream's specs.

    Attributes:
        name: its name in the table.
        focus: regular expression of the specs' names.
        gates: additional feature gates of the control plane.
        apis: additional API groups with versions.
        versions: the versions of Kubernetes with the suite; all if empty.
    """

    name: str
    focus: str
    gates: Sequence[str] = ()
    apis: Sequence[str] = ()
    versions: Sequence[str] = ()


SUITES = (
    Suite(
        name="default feature gates",
        focus=r"\[sig-scheduling\] (LimitRange|Scheduler(Predicates|Preemption|Priorities)) ",
    ),
    Suite(
        name="pod groups",
        focus=r"\[sig-scheduling\] (GangScheduling|Workload|WorkloadAwarePreemption) ",
        gates=("GenericWorkload",),
        apis=("scheduling.k8s.io/v1beta1",),
        versions=("1.37",),
    ),
)


def suites(version: str) -> list[Suite]:
    """Return the suites of a version of Kubernetes."""
    return [each for each in SUITES if not each.versions or version in each.versions]


def build(version: str) -> Path:
    """Build the tests of a version, unless they are there, and return the program.

    Raises:
        BuildError: no usable Go, a failed download, or a failed compilation.
    """
    folder = pinned(version, "e2e")
    return GoTool(f"{version}/e2e.test", "k8s.io/kubernetes/test/e2e", folder, tests=True).build()


def pinned(version: str, name: str, *sources: Path) -> Path:
    """Return a folder for a Go module with the pins of upstream's tests, and with these files."""
    folder = HOME / version / name
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("mod", "sum"):
        own = (CONTROL_PLANE / version / f"go.{kind}").read_text()
        (folder / f"go.{kind}").write_text(own + (PINS / f"{version}.{kind}").read_text())
    for source in sources:
        (folder / source.name).write_bytes(source.read_bytes())
    return folder
