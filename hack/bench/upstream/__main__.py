"""`python -m hack.bench.upstream` runs Kubernetes' own scheduler_perf with and without Reserver.

Its workloads, its API server and its kube-scheduler are upstream's, unchanged; with an extender its
test cases use Reserver's shipped KubeSchedulerConfiguration. kube-scheduler alone, Reserver, and an
extender in Go that decides nothing take turns in one run. Only ratios matter: upstream's thresholds
are for its own machines.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.bed.install import ROOT
from hack.bench.report import machine, progress, table, write
from hack.bench.throughput.variants import VARIANTS, Extender
from hack.bench.upstream.workloads import (
    LONG,
    WITH_THRESHOLDS,
    WORKLOADS,
    Rate,
    Workload,
    rows,
    throughput,
    with_scheduler,
)
from hack.conformance.suite import pinned
from hack.controlplane.build import BuildError, bin_dir, chosen
from hack.controlplane.process import HeldPort
from hack.go_tool import PLAIN_EXTENDER, GoTool
from hack.programs import done, heed_signals

_ALONE = "stock"
_WAYS = (_ALONE, "reserver", "least")
_TESTS = "test/integration/scheduler_perf"
_CONFIG = "reserver-scheduler.yaml"
_LONGEST_S = 1200


class Upstream:
    """scheduler_perf of a version of Kubernetes, as a program and the files that it reads."""

    def __init__(self, folder: Path) -> None:
        """Build it, unless it is built already.

        Raises:
            BuildError: no usable Go, a failed download, or a failed compilation.
        """
        source = Path(__file__).with_name("perf_test.go")
        module = pinned(chosen(), "scheduler_perf", source)
        tool = GoTool(f"{chosen()}/scheduler_perf.test", ".", module, tests=True)
        self._program = tool.build()
        self._source = tool.source("k8s.io/kubernetes")
        self._folder = folder

    def measure(self, workload: Workload, way: str) -> Rate:
        """Return the pods a second of a workload, with one of hack.bench.throughput's variants.

        Raises:
            ValueError: it failed; the message names the file with its output.
        """
        with self._files(workload, way) as (folder, environment):
            pattern = "/".join(f"^{part}$" for part in workload.title.split("/"))
            ended = done(
                *(str(self._program), "-test.run=^$", "-test.benchtime=1ns"),
                f"-test.bench=^BenchmarkPerfScheduling$/{pattern}",
                *("-perf-scheduling-label-filter=", f"-data-items-dir={folder / 'found'}"),
                timeout_s=_LONGEST_S,
                cwd=folder / workload.topic,
                env=os.environ | environment,
            )
            found = [*(folder / "found").glob("*.json")]
            rate = throughput(found[0].read_text(), workload.pods) if found else None
            if rate is None or (ended.returncode and not rate.is_too_low):
                log = self._folder.with_suffix(".log")
                log.write_text(ended.stdout + ended.stderr)
                raise ValueError(f"{workload.title} failed, see {log}")
            return rate

    @contextmanager
    def _files(self, workload: Workload, way: str) -> Iterator[tuple[Path, dict[str, str]]]:
        """Copy the program's files; yield the copy and the program's environment variables."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name)
            shutil.copytree(
                self._source / _TESTS,
                folder,
                ignore=shutil.ignore_patterns("*.go"),
                copy_function=shutil.copyfile,
                dirs_exist_ok=True,
            )
            for each in (folder, folder / workload.topic):
                each.chmod(0o755)  # The module cache is read-only.
            modules = self._source.parents[1]  # k8s.io/kubernetes@VERSION is below it.
            environment = {
                # A program that runs outside of its build finds its paths by these two.
                "TEST_SRCDIR": str(modules.parent),
                "TEST_WORKSPACE": modules.name,
                "PATH": f"{bin_dir()}{os.pathsep}{os.environ['PATH']}",
            }
            if way != _ALONE:
                environment |= self._beside(folder / workload.topic, way)
            yield folder, environment

    def _beside(self, topic: Path, way: str) -> dict[str, str]:
        """Make the cases call an extender; return the variables that start it."""
        held = HeldPort()
        port = held.number
        held.close()
        cases = topic / "performance-config.yaml"
        cases.chmod(0o644)
        cases.write_text(with_scheduler(cases.read_text(), _CONFIG))
        config = VARIANTS[way].config(Path(), Extender(0, port), "default-scheduler")
        (topic / _CONFIG).write_text(config)
        beside = topic / "beside"
        beside.write_text(
            f'#!/bin/sh\nexec {sys.executable} -m hack.bench.upstream.beside {way} {port} "$1"\n'
        )
        beside.chmod(0o755)
        return {"BESIDE": str(beside), "PYTHONPATH": str(ROOT)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench.upstream", description=__doc__)
    known = {each.title: each for each in (*WORKLOADS, *LONG, *WITH_THRESHOLDS)}
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--long", action="store_true", help="those with 5,000 nodes as well")
    parser.add_argument("--only", default="", help="workloads (default: the small ones)")
    parser.add_argument("--ways", default=",".join(_WAYS), help="which take turns, stock first")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md as well")
    options = parser.parse_args()
    usual = (*WORKLOADS, *LONG) if options.long else WORKLOADS
    ways, wanted = options.ways.split(","), [each.title for each in usual]
    if options.only:
        wanted = options.only.split(",")
    if unknown := {*wanted} - {*known} | {*ways} - {*_WAYS}:
        there = ", ".join((*known, *_WAYS))
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {there}")
    if ways[0] != _ALONE:
        parser.error(f"--ways begins with {_ALONE}: all ratios are to it")
    heed_signals()
    with tempfile.TemporaryDirectory(prefix="reserver-upstream-") as folder:
        try:
            PLAIN_EXTENDER.build()
            upstream = Upstream(Path(folder))
            found = _measured(upstream, [known[title] for title in wanted], ways, options.rounds)
        except (BuildError, ValueError) as error:
            sys.exit(str(error))
    header = ["workload", VARIANTS[_ALONE].title]
    for way in ways[1:]:
        header += [VARIANTS[way].title, "of alone"]
    header.append("upstream's threshold")
    shown = table("scheduler_perf, pods a second", header, [*rows(found, _ALONE)])
    text = f"{shown}\n{machine(chosen())}; medians of {options.rounds} turns.\n"
    print(text)
    if options.write:
        write("bench-upstream", text)


def _measured(
    upstream: Upstream, wanted: list[Workload], ways: list[str], rounds: int
) -> dict[Workload, dict[str, list[Rate]]]:
    found: dict[Workload, dict[str, list[Rate]]] = {
        workload: {way: [] for way in ways} for workload in wanted
    }
    for workload, by_way in found.items():
        for turn in range(rounds):
            for way, rates in by_way.items():
                rates.append(upstream.measure(workload, way))
                said = f"{workload.title}, {VARIANTS[way].title}: {rates[-1].pods:.0f} pods/s"
                progress(f"turn {turn + 1} of {rounds}: {said}")
    return found


if __name__ == "__main__":
    main()
