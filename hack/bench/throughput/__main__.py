"""`python -m hack.bench.throughput` measures the cost of a scheduled pod on a real control plane.

kube-scheduler alone, with Reserver, and with a plain extender in Go take turns in one run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from statistics import median

from hack.bench.report import progress, table
from hack.bench.throughput.turn import EXTENDER, SERVERS, Cluster, Rounds, Turn, measuring
from hack.bench.throughput.variants import VARIANTS

_HEADER = ("", "pods/s", "of stock", *SERVERS, "extender", "algorithm")


def main() -> None:
    """The command line."""
    options = _options()
    names = options.only.split(",")
    began = time.monotonic()
    with measuring():
        for nodes in options.nodes:
            rounds = Rounds(nodes, options.pods, options.rounds)
            turns = rounds.run(names, Cluster.turn)
            title = f"{nodes:,} nodes: what a scheduled pod costs"
            print(table(title, _HEADER, _rows(turns)), flush=True)
    print(f"{rounds}.")
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


def _rows(turns: Mapping[str, Sequence[Turn]]) -> list[list[str]]:
    stock = turns.get("stock")
    rows = []
    for name, taken in turns.items():
        costs = [median(turn.cpu_ms(process) for turn in taken) for process in (*SERVERS, EXTENDER)]
        of_stock = "n/a"
        if stock:  # ratios within one round
            ratios = (turn.rate / alone.rate for turn, alone in zip(taken, stock, strict=True))
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
