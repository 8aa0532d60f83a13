"""`python -m hack.release` runs all that takes too long for each change, one after the other.

Each step's output goes to a file; what failed stays there. The exit status is 1 if a step failed.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hack.controlplane.build import versions

_EVERY_S = 60.0
"""Seconds between two lines of progress of a step."""


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        name: what `--steps` calls it.
        command: its words; `python` is this one.
        minutes: how long it takes on two cores, roughly.
        environment: what differs from ours.
    """

    name: str
    command: str
    minutes: int
    environment: Mapping[str, str] = field(default_factory=dict)


_SEED = secrets.randbelow(2**32)
"""Of all that is drawn; each step's command shows it."""

STEPS = (
    Step("check", "make check", 1),
    Step("test", "make test", 5),
    Step("dist", "make dist", 1),
    Step("fuzz", "make fuzz INPUTS=1000000", 5),
    Step(
        "state",
        "python -m pytest -q tests/property/test_state.py --timeout 7200"
        f" --hypothesis-seed {_SEED}",
        40,
        {"RESERVER_HYPOTHESIS": "fuzz"},
    ),
    Step(
        "property",
        "python -m pytest -q -n auto tests/property tests/unit -m hypothesis --timeout 1800"
        f" --hypothesis-seed {_SEED}",
        10,
        {"RESERVER_HYPOTHESIS": "wide"},
    ),
    Step("mutants", "python -m hack.mutants", 40),
    Step("mutants-drawn", f"python -m hack.mutants --drawn 400 --minutes 35 --seed {_SEED}", 40),
    Step("differential", "make differential ARGS=--pairs=3000", 10),
    Step("descheduler", "make descheduler ARGS=--pairs=3000", 4),
    Step("optimum", "make optimum", 30),
    Step("load", "python -m pytest -q tests/load", 20),
    Step("bench", "make bench", 4),
    Step("sizing", "python -m hack.bench.sizing", 6),
    Step("hostile", "make hostile", 5),
    Step("presses", "python -m hack.presses --presses 400", 12),
    Step("moving", "make moving", 12),
    Step(
        "moving-faults",
        "python -m hack.chaos.moving --modes ReserveFirst SurgeFirst --faults --timeout 300",
        12,
    ),
    Step("moving-writes", "python -m hack.chaos.moving.writes", 20),
    Step("moving-single", "python -m hack.chaos.moving.single", 12),
    Step("bench-live", "make bench-live", 15),
    Step("bench-start", "make bench-start ARGS=--pods=30000", 8),
    *(
        Step(name.format(version), command, minutes, {"KUBERNETES": version})
        for version in versions()
        for name, command, minutes in (
            ("build-{}", "python -m hack.controlplane.build", 11),
            ("kubernetes-{}", "python -m hack.release.version", 3),
            ("conformance-{}", "python -m hack.conformance --record", 15),
        )
    ),
    Step("chaos", "make chaos", 30),
    Step("bugs", "python -m hack.chaos --bug all", 45),
    *(Step(f"e2e-{turn}", "make e2e ARGS=--runs=20", 15) for turn in (1, 2, 3)),
)


@dataclass(frozen=True)
class Result:
    """The result of a step.

    Attributes:
        step: the step.
        status: its exit status.
        seconds: its duration.
    """

    step: Step
    status: int
    seconds: float


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.release", description=__doc__)
    known = [step.name for step in STEPS]
    parser.add_argument("--steps", default=",".join(known), help="(default: all of them)")
    options = parser.parse_args()
    wanted = options.steps.split(",")
    if unknown := set(wanted) - set(known):
        parser.error(f"no such steps: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="reserver-release-"))
    steps = [step for step in STEPS if step.name in wanted]
    console.print(f"about {sum(step.minutes for step in steps)} minutes; output: {folder}")
    results = [run(step, folder / f"{step.name}.log", console) for step in steps]
    console.print(table(results))
    sys.exit(any(result.status for result in results))


def run(step: Step, log: Path, console: Console) -> Result:
    """Run a step, and say now and then how long it has been at it."""
    words = [sys.executable if word == "python" else word for word in step.command.split()]
    began = time.monotonic()
    console.print(f"{step.name}: {step.command}, about {step.minutes} min", highlight=False)
    with log.open("wb") as out:
        environment = os.environ | step.environment
        process = subprocess.Popen(words, stdout=out, stderr=out, env=environment)
        while True:
            try:
                status = process.wait(_EVERY_S)
            except subprocess.TimeoutExpired:
                minutes = (time.monotonic() - began) / 60
                console.print(f"  {step.name}: {minutes:.0f} min", highlight=False)
            else:
                break
    seconds = time.monotonic() - began
    said = "ok" if status == 0 else f"FAILED ({status}): {log}"
    console.print(f"  {step.name}: {said}, {seconds / 60:.1f} min", highlight=False, soft_wrap=True)
    return Result(step, status, seconds)


def table(results: list[Result]) -> Table:
    """The summary."""
    shown = Table()
    for title in ("step", "min", "outcome"):
        shown.add_column(title, justify="right" if title == "min" else "left", no_wrap=True)
    for result in results:
        style = "bold red" if result.status else None
        outcome = f"failed ({result.status})" if result.status else "ok"
        shown.add_row(result.step.name, f"{result.seconds / 60:.1f}", outcome, style=style)
    return shown


if __name__ == "__main__":
    main()
