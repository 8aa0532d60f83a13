"""`python -m hack.bench.throughput` says what a scheduled pod costs, on the real control plane.

kube-scheduler alone, with Reserver, and with a plain extender in Go take turns in one run.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from hack.bed.api import Api
from hack.bed.install import install
from hack.bench.documents import NAMESPACE
from hack.bench.report import progress, table
from hack.bench.throughput.turn import EXTENDER, SERVERS, Cluster, Turn
from hack.bench.throughput.variants import VARIANTS
from hack.controlplane.build import BuildError, chosen
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.controlplane.process import StartError
from hack.go_tool import PLAIN_EXTENDER

_HEADER = ("", "pods/s", "of stock", *SERVERS, "extender", "algorithm")


def main() -> None:
    """The command line."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    try:
        PLAIN_EXTENDER.build()
        for nodes in options.nodes:
            print(table(*_measured(options, nodes)), flush=True)
    except (StartError, BuildError, TimeoutError) as error:
        sys.exit(str(error))
    print(
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, Kubernetes {chosen()}, {time.strftime('%Y-%m-%d')}; "
        f"medians of {options.rounds} turns of {options.pods:,} pods."
    )
    progress(f"done in {time.monotonic() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.throughput", description=__doc__)
    parser.add_argument("--nodes", type=_numbers, default=(1_000, 5_000), help="1000,5000")
    parser.add_argument("--pods", type=int, default=2_000, help="timed in a turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each")
    parser.add_argument("--only", default=",".join(VARIANTS), help="which take turns")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(VARIANTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(VARIANTS)}")
    return options


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _measured(
    options: argparse.Namespace, nodes: int
) -> tuple[str, Sequence[str], Sequence[Sequence[str]]]:
    """Return the table of so many nodes: its title, header and rows."""
    names = options.only.split(",")
    turns: dict[str, list[Turn]] = {name: [] for name in names}
    with (
        tempfile.TemporaryDirectory(prefix="reserver-throughput-") as folder,
        ControlPlane(controller_manager=False) as plane,
        closing(Api(plane.kubeconfig)) as api,
    ):
        account = install(plane.kubeconfig, plane.folder, NAMESPACE)
        create_nodes(plane.kubeconfig, nodes, cpu="32", memory="128Gi")
        cluster = Cluster(plane, api, account, Path(folder), options.pods)
        cluster.turn(VARIANTS[names[0]])  # In the first one all is new.
        for number in range(options.rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                turns[name].append(cluster.turn(VARIANTS[name]))
                progress(f"{nodes:,} nodes, {name}: {turns[name][-1].rate:.0f} pods/s")
    return f"{nodes:,} nodes: what a scheduled pod costs", _HEADER, _rows(turns)


def _rows(turns: Mapping[str, Sequence[Turn]]) -> list[list[str]]:
    stock = turns.get("stock")
    rows = []
    for name, taken in turns.items():
        costs = [median(turn.cpu_ms(process) for turn in taken) for process in (*SERVERS, EXTENDER)]
        of_stock = "n/a"
        if stock:  # the turns of one round stand beside each other
            ratios = (turn.rate / beside.rate for turn, beside in zip(taken, stock, strict=True))
            of_stock = f"{median(ratios):.2f}"
        rows.append(
            [
                VARIANTS[name].title,
                f"{median(turn.rate for turn in taken):.0f}",
                of_stock,
                *(f"{cost:.2f} ms" if cost else "n/a" for cost in costs),
                f"{median(turn.algorithm_ms for turn in taken):.2f} ms",
            ]
        )
    return rows


if __name__ == "__main__":
    main()
