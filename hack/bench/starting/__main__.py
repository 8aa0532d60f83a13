"""`python -m hack.bench.starting` measures a start with the API server of a large cluster.

Then the time until many reservations are acknowledged, and a start with these.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hack.bed.api import Api
from hack.bed.install import install
from hack.bench.documents import NAMESPACE
from hack.bench.report import machine, progress, table, times
from hack.bench.starting.fill import create_pods, fill
from hack.bench.starting.stores import create_reservations, wait_acknowledged
from hack.controlplane.build import BuildError, chosen
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.process import StartError
from hack.controlplane.scheduler_config import PLAIN_SCHEDULER, render_scheduler_config
from hack.programs import cpu_s, memory
from hack.reserver_process import ReserverProcess, wait_for

_MEMORY = "10GiB"
"""Memory limit of kube-apiserver, with 150,000 pods and all their watches."""

_BEGINS_S = 600.0


class Start(NamedTuple):
    """The cost until Reserver was ready, or all entries were acknowledged.

    Attributes:
        seconds: elapsed time.
        cpu: seconds of CPU of Reserver.
        server_cpu: seconds of CPU of kube-apiserver meanwhile.
        bytes: highest resident memory of Reserver.
    """

    seconds: float
    cpu: float
    server_cpu: float
    bytes: int

    def cells(self) -> tuple[str, ...]:
        """Return the cells of its row."""
        return (
            f"{self.seconds:.1f} s",
            f"{self.cpu:.1f} s",
            f"{self.server_cpu:.1f} s",
            times(self.cpu / self.server_cpu),
            f"{self.bytes / 2**20:.0f} MiB",
        )


class Watched:
    """A Reserver with a control plane, and the cost of both."""

    def __init__(self, plane: ControlPlane, account: Path, folder: Path) -> None:
        self._server = plane.pids["kube-apiserver"]
        log = folder / "reserver.log"
        self.reserver = ReserverProcess(account, log, "--log-level", "info", wait_ready=False)

    def start(self) -> Start:
        """Start Reserver; return the cost until it was ready."""
        began, server = time.monotonic(), cpu_s(self._server)
        self.reserver.start()
        wait_for(self.reserver.is_ready, "reserver is ready", _BEGINS_S)
        return self._since(began, 0.0, server)

    def hold(self, api: Api, count: int, nodes: int) -> Start:
        """Write reservations; return the cost until all of them were acknowledged."""
        own = cpu_s(self.reserver.process.pid)
        began, server = time.monotonic(), cpu_s(self._server)
        stores = create_reservations(api, count, nodes)
        wait_acknowledged(api, stores)
        return self._since(began, own, server)

    def _since(self, began: float, own: float, server: float) -> Start:
        seconds, pid = time.monotonic() - began, self.reserver.process.pid
        spent = cpu_s(pid) - own, cpu_s(self._server) - server
        return Start(seconds, *spent, memory(pid))


def main() -> None:
    """The command line."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("GOMEMLIMIT", _MEMORY)
    began = time.monotonic()
    try:
        title = f"A start beside kube-apiserver: {options.nodes:,} nodes, {options.pods:,} pods"
        header = ("", "took", "Reserver", "kube-apiserver", "ratio", "memory")
        print(table(title, header, list(_rows(options))))
    except (StartError, BuildError, TimeoutError) as error:
        sys.exit(str(error))
    print(f"{machine(chosen())}; medians of {options.rounds} starts.")
    progress(f"done in {time.monotonic() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.starting", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--recent", type=int, default=3_000, help="bound within the last minute")
    parser.add_argument("--reservations", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3, help="starts of each kind")
    return parser.parse_args()


def _rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the row of each kind of start."""
    with (
        tempfile.TemporaryDirectory(prefix="reserver-starting-") as folder,
        ControlPlane(controller_manager=False) as plane,
        closing(Api(plane.kubeconfig)) as api,
    ):
        account = install(plane.kubeconfig, plane.folder, NAMESPACE)
        fill(plane, options.nodes, options.pods)
        alone = _scheduler(plane).cells()
        progress(f"kube-scheduler: {', '.join(alone)}")
        yield "kube-scheduler, until ready", *alone
        watched = Watched(plane, account, Path(folder))
        yield "until ready", *_starts(watched, options.rounds)
        create_pods(plane, options.pods, options.recent, options.nodes)
        recent = f"until ready, {options.recent:,} pods bound just before"
        yield recent, *_starts(watched, 1)
        watched.start()
        progress(f"{options.reservations:,} reservations are written")
        held = watched.hold(api, options.reservations, options.nodes)
        progress(f"acknowledged: {', '.join(held.cells())}")
        watched.reserver.stop()
        yield f"{options.reservations:,} reservations, until acknowledged", *held.cells()
        yield f"until ready, {options.reservations:,} reservations", *_starts(watched, 1)


def _scheduler(plane: ControlPlane) -> Start:
    """Start a kube-scheduler without extenders; return the cost until it was ready."""
    config = plane.folder / "plain.yaml"
    config.write_text(render_scheduler_config(PLAIN_SCHEDULER, kubeconfig=plane.kubeconfig))
    server = plane.pids["kube-apiserver"]
    began, server_cpu = time.monotonic(), cpu_s(server)
    plane.start_scheduler(config)
    seconds, pid = time.monotonic() - began, plane.pids["kube-scheduler"]
    taken = Start(seconds, cpu_s(pid), cpu_s(server) - server_cpu, memory(pid))
    plane.stop_scheduler()
    return taken


def _starts(watched: Watched, rounds: int) -> Sequence[str]:
    """Return the cells of the median start."""
    starts = []
    for number in range(rounds):
        starts.append(watched.start())
        watched.reserver.stop()
        progress(f"start {number + 1} of {rounds}: {', '.join(starts[-1].cells())}")
    middle = (median(each) for each in zip(*starts, strict=True))
    return Start(*middle).cells()


if __name__ == "__main__":
    main()
