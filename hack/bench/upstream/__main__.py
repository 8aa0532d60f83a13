"""`python -m hack.bench.upstream` runs Kubernetes' own scheduler_perf with and without Reserver.

Its workloads, its API server and its kube-scheduler are upstream's, unchanged; with Reserver their
test cases name the KubeSchedulerConfiguration that we ship. Both take turns in one run. Ratios
count: the thresholds that upstream has are those of its own machines.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.bed.bed import SCHEDULER_CONFIG
from hack.bed.install import ROOT
from hack.bench.report import progress, table
from hack.bench.upstream.workloads import WORKLOADS, Workload, rows, throughput, with_scheduler
from hack.conformance.suite import pinned
from hack.controlplane.build import BuildError, bin_dir, chosen
from hack.controlplane.process import HeldPort
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.go_tool import GoTool
from hack.programs import done, heed_signals

_ALONE, _RESERVER = "kube-scheduler alone", "Reserver"
_TESTS = "test/integration/scheduler_perf"
_CONFIG = "reserver-scheduler.yaml"
_LONGEST_S = 1200


class Upstream:
    """scheduler_perf of a version of Kubernetes, as a program and the files that it reads."""

    def __init__(self, folder: Path) -> None:
        """Build it, unless it is there.

        Raises:
            BuildError: no usable Go, a failed download, or a failed compilation.
        """
        source = Path(__file__).with_name("perf_test.go")
        module = pinned(chosen(), "scheduler_perf", source)
        tool = GoTool(f"{chosen()}/scheduler_perf.test", ".", module, tests=True)
        self._program = tool.build()
        self._source = tool.source("k8s.io/kubernetes")
        self._folder = folder

    def measure(self, workload: Workload, *, has_reserver: bool) -> float:
        """Return the pods a second of a workload.

        Raises:
            ValueError: it failed; the message names the file with what it wrote.
        """
        with self._files(workload, has_reserver=has_reserver) as (folder, environment):
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
            if ended.returncode or not found:
                log = self._folder.with_suffix(".log")
                log.write_text(ended.stdout + ended.stderr)
                raise ValueError(f"{workload.title} failed, see {log}")
            return throughput(found[0].read_text())

    @contextmanager
    def _files(
        self, workload: Workload, *, has_reserver: bool
    ) -> Iterator[tuple[Path, dict[str, str]]]:
        """Copy what the program reads; yield the copy and the variables that it needs."""
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
                each.chmod(
                    0o755
                )  # The module cache is read-only, and so are copies of its folders.
            modules = self._source.parents[1]  # k8s.io/kubernetes@VERSION is below it.
            environment = {
                # Paths in a program without those of its build are found by these two.
                "TEST_SRCDIR": str(modules.parent),
                "TEST_WORKSPACE": modules.name,
                "PATH": f"{bin_dir()}{os.pathsep}{os.environ['PATH']}",
            }
            if has_reserver:
                environment |= self._beside(folder / workload.topic)
            yield folder, environment

    def _beside(self, topic: Path) -> dict[str, str]:
        """Have the cases call Reserver; return what starts it."""
        held = HeldPort()
        port = held.number
        held.close()
        cases = topic / "performance-config.yaml"
        cases.chmod(0o644)
        cases.write_text(with_scheduler(cases.read_text(), _CONFIG))
        config = render_scheduler_config(
            SCHEDULER_CONFIG, kubeconfig=Path(), port=port, scheduler_name="default-scheduler"
        )
        (topic / _CONFIG).write_text(config)
        beside = topic / "beside"
        beside.write_text(
            f'#!/bin/sh\nexec {sys.executable} -m hack.bench.upstream.beside {port} "$1"\n'
        )
        beside.chmod(0o755)
        return {"BESIDE": str(beside), "PYTHONPATH": str(ROOT)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench.upstream", description=__doc__)
    titles = [workload.title for workload in WORKLOADS]
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--only", default=",".join(titles), help="workloads (default: all)")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(titles):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(titles)}")
    heed_signals()
    wanted = [each for each in WORKLOADS if each.title in options.only.split(",")]
    with tempfile.TemporaryDirectory(prefix="reserver-upstream-") as folder:
        try:
            found = _measured(Upstream(Path(folder)), wanted, options.rounds)
        except (BuildError, ValueError) as error:
            sys.exit(str(error))
    header = ("workload", _ALONE, _RESERVER, "of alone")
    print(table("scheduler_perf, pods a second", header, [*rows(found, _ALONE)]))
    print(
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, Kubernetes {chosen()}, {time.strftime('%Y-%m-%d')}; "
        f"medians of {options.rounds} turns."
    )


def _measured(
    upstream: Upstream, wanted: list[Workload], rounds: int
) -> dict[Workload, dict[str, list[float]]]:
    found: dict[Workload, dict[str, list[float]]] = {
        workload: {_ALONE: [], _RESERVER: []} for workload in wanted
    }
    for turn in range(rounds):
        for workload in wanted:
            for way, rates in found[workload].items():
                rate = upstream.measure(workload, has_reserver=way == _RESERVER)
                rates.append(rate)
                progress(f"turn {turn + 1} of {rounds}: {workload.title}, {way}: {rate:.0f} pods/s")
    return found


if __name__ == "__main__":
    main()
