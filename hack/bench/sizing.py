"""`python -m hack.bench.sizing` prints the cost of clusters of several sizes: docs/sizing.md.

Each size has its own processes, fed with prepared lists: one starts, holds reservations and decides
Filter calls; another one plans a rebalancing.
"""

import argparse
import gc
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
import uvloop

from hack.bench import rebalancing
from hack.bench.documents import encode, new_pod
from hack.bench.report import milliseconds, progress, table
from hack.bench.start import read_into
from hack.bench.world import NOW, SAMPLED, Size, node_names, reserve
from hack.programs import memory
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.process import logs
from reserver.rebalance import planner
from reserver.rebalance.dump import read_lines
from reserver.rebalance.round_input import RoundInput
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.settings.serve import LogLevel

SIZES = (
    Size(nodes=300, pods=9_000, reservations=1_000),
    Size(nodes=1_000, pods=30_000, reservations=3_000),
    Size(nodes=5_000, pods=150_000, reservations=15_000),
    Size(nodes=15_000, pods=450_000, reservations=45_000),
)
_NAMES, _CALLS = 500, 200
_MOST_PLANNED = 5_000
"""Most nodes of a measured plan: its time grows with the square of their number."""


class Taken(msgspec.Struct, frozen=True):
    """The cost of one process.

    Attributes:
        cpu: seconds of CPU of a start, or of a plan.
        longest: seconds of CPU of one page, or one call, which block all other calls.
        call: median seconds of CPU of a Filter call with 500 names, decided in process.
        bytes: highest resident memory.
    """

    cpu: float
    bytes: int
    longest: float = 0.0
    call: float = 0.0


async def _serve(size: Size) -> Taken:
    state = State()
    busy = await read_into(state, size.nodes, size.pods, time.process_time)
    reserve(state, size)
    state.is_complete = True
    pod = decode(PodObject, encode(new_pod("web-1"))).value()
    names = node_names(size.nodes, order=SAMPLED)[:_NAMES]
    calls = []
    for _ in range(_CALLS):
        began = time.process_time()
        filter_nodes(pod, names, state, NOW)
        calls.append(time.process_time() - began)
    return Taken(sum(busy), memory("self"), max(*busy, *calls), median(calls))


def _plan(file: Path) -> Taken:
    gc.disable()
    began = time.process_time()
    with file.open("rb", 2**20) as lines:
        inventory = read_lines(lines).inventory
    policy = rebalancing.POLICY
    planner.decide(RoundInput(policy=policy, cluster=inventory, loads={}, rounds={}, now=NOW))
    return Taken(time.process_time() - began, memory("self"))


def _as_child(*words: str) -> Taken:
    if len(words) == 1:
        return _plan(Path(words[0]))
    nodes, pods, reservations = map(int, words)
    return uvloop.run(_serve(Size(nodes=nodes, pods=pods, reservations=reservations)))


def _in_child(*words: str) -> Taken:
    command = [sys.executable, "-m", "hack.bench.sizing", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Taken)


def _row(size: Size, folder: Path) -> tuple[str, ...]:
    progress(f"{size.nodes:,} nodes, {size.pods:,} pods")
    serving = _in_child(*map(str, (size.nodes, size.pods, size.reservations)))
    return (
        f"{size.nodes:,}",
        f"{size.pods:,}",
        f"{size.reservations:,}",
        f"{serving.cpu:.1f} s",
        f"{serving.bytes / 2**20:.0f} MiB",
        milliseconds(serving.longest),
        milliseconds(serving.call),
        *_planned(size, folder / "dump"),
    )


def _planned(size: Size, file: Path) -> tuple[str, str]:
    if size.nodes > _MOST_PLANNED:
        return "n/a", "n/a"
    with file.open("wb") as out:
        out.writelines(line + b"\n" for line in rebalancing.dump(size.nodes, size.pods))
    planning = _in_child(str(file))
    return f"{planning.cpu:.1f} s", f"{planning.bytes / 2**20:.0f} MiB"


def main() -> None:
    """Measure and print; or run as the measured process."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench.sizing", description=__doc__)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    rest = parser.parse_args().rest
    logs.configure(LogLevel.WARNING)
    if rest:
        sys.stdout.buffer.write(msgspec.json.encode(_as_child(*rest)))
        return
    header = ("nodes", "pods", "reservations", "start", "memory", "longest", "Filter")
    with tempfile.TemporaryDirectory(prefix="reserver-sizing-") as folder:
        rows = [_row(size, Path(folder)) for size in SIZES]
    print(table("By size of the cluster", (*header, "plan", "its memory"), rows))
    system = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    print(f"{system}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}.")


if __name__ == "__main__":
    main()
