"""`make optimum` compares plans with CP-SAT's best, on random clusters with constraints.

Nodes are emptied, and pending pods get room. `replay` carries each plan out. Seconds are of CPU for
ours, of the clock for CP-SAT, which has two threads. The exit status is 1 if a plan breaks
something or is too slow, or if all plans of a kind together are short of their goals.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from hack.optimum.instances import Instance, instance, wanting
from hack.optimum.planning import broken, ends, planned
from reserver.rebalance.defragment import defragment
from reserver.rebalance.makeroom import make_room
from reserver.rebalance.plan import Plan
from reserver.rebalance.time_limit import TimeLimit

SIZES = (10, 20, 50, 100, 200)
FILLS = (0.6, 0.75, 0.85, 0.92)
LEAST_GAIN, MOST_MOVES, MOST_SECONDS = 0.95, 1.2, 10.0
"""Goals of plans: the share of the most gain, the ratio to the fewest moves, the time."""


class Case(NamedTuple):
    """A cluster, and the task on it.

    Attributes:
        nodes: how many there are.
        fill: which share of their cores is requested.
        seed: of the random cluster.
        landing: pods are to land; else nodes are to be emptied.
    """

    nodes: int
    fill: float
    seed: int
    landing: bool

    def cluster(self) -> Instance:
        """Return it."""
        found = instance(self.nodes, self.fill, self.seed)
        return wanting(found, self.seed) if self.landing else found


class Row(NamedTuple):
    """A plan, compared with the best known plan.

    Attributes:
        case: the cluster and its task.
        pods: how many there are.
        gain: nodes that the plan empties, or pods that land by it.
        moves: of the plan.
        seconds: of CPU.
        best: the most gain that CP-SAT found; None if it found none.
        bound: there is no more gain.
        fewest: the fewest moves that CP-SAT found for as much gain as the plan has, or for its own
            if that is less.
        oracle_s: how long CP-SAT took.
        broken: the constraints that the plan breaks.
    """

    case: Case
    pods: int
    gain: int
    moves: int
    seconds: float
    best: int | None
    bound: int | None
    fewest: int | None
    oracle_s: float
    broken: Sequence[str]

    @property
    def most(self) -> int:
        """The most gain that anybody found."""
        return max(self.gain, self.best or 0)


def ask(
    python: str, found: Instance, case: Case, plan: Plan, seconds: float
) -> dict[str, int | None]:
    """Return the answer of CP-SAT, which has an environment of its own."""
    question = {
        "cluster": found.plain(),
        "landing": case.landing,
        "ours": len(plan.landings if case.landing else plan.emptied),
        "ends": ends(found, plan),
        "seconds": seconds,
        "workers": 2,
    }
    answer = subprocess.run(
        [python, "-m", "hack.optimum.oracle"],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=True,
    )
    found_answer: dict[str, int | None] = json.loads(answer.stdout)
    return found_answer


def compare(case: Case, python: str, seconds: float, oracle_s: float) -> Row:
    """Return a plan, compared with the best known plan."""
    found = case.cluster()
    cluster = planned(found)
    began = time.process_time()
    limit = TimeLimit.after(seconds, time.process_time)  # Others may use the machine, too.
    plan = (make_room if case.landing else defragment)(cluster, limit=limit)
    took = time.process_time() - began
    gain = len(plan.landings if case.landing else plan.emptied)
    best = ask(python, found, case, plan, oracle_s)
    return Row(
        case=case,
        pods=len(found.pods),
        gain=gain,
        moves=len(plan.moves),
        seconds=took,
        best=best["gain"],
        bound=best["bound"],
        fewest=best["fewest"],
        oracle_s=best["seconds"] or 0.0,
        broken=broken(found, plan),
    )


def verdict(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the share of the most gain, and how many times the fewest moves, of all together.

    Moves count where both gain as much: a plan that gains more may take more.
    """
    most = sum(row.most for row in rows)
    equal = [row for row in rows if row.fewest is not None and row.gain <= (row.best or 0)]
    fewest = sum(min(row.moves, row.fewest or 0) for row in equal)
    share = sum(row.gain for row in rows) / most if most else 1.0
    return share, sum(row.moves for row in equal) / fewest if fewest else 1.0


def table(rows: Iterable[Row], gained: str) -> Table:
    """Return the table of plans of one kind."""
    shown = Table(title=gained)
    titles = ("nodes", "full", "seed", "pods", gained, "moves", "s", "best", "bound", "fewest", "s")
    for title in titles:
        shown.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        nodes, fill, seed, _ = row.case
        cells = (nodes, fill, seed, row.pods, row.gain, row.moves, f"{row.seconds:.1f}")
        shown.add_row(*map(str, (*cells, row.best, row.bound, row.fewest, row.oracle_s)))
    return shown


def failures(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the missed goals."""
    share, factor = verdict(rows)
    if share < LEAST_GAIN:
        yield f"{share:.1%} of the most gain, not {LEAST_GAIN:.0%}"
    if factor > MOST_MOVES:
        yield f"{factor:.2f} times the fewest moves, not {MOST_MOVES}"
    yield from (f"{row.case}: {row.seconds:.1f} s" for row in rows if row.seconds > MOST_SECONDS)
    yield from (f"{row.case}: {why}" for row in rows for why in row.broken)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.optimum", description=__doc__)
    parser.add_argument("--python", required=True, help="the Python that has OR-Tools")
    parser.add_argument(
        "--nodes", type=int, nargs="+", default=SIZES, help="(default: %(default)s)"
    )
    parser.add_argument("--fills", type=float, nargs="+", default=FILLS)
    parser.add_argument("--seeds", type=int, nargs="+", default=(1,))
    parser.add_argument("--seconds", type=float, default=9.0, help="of CPU for each of ours")
    parser.add_argument(
        "--oracle-seconds", type=float, default=30.0, help="for each of CP-SAT's two"
    )
    options = parser.parse_args()
    console, failed = Console(width=120), False
    for landing, gained in ((False, "emptied"), (True, "landed")):
        rows = []
        for nodes in options.nodes:
            for fill in options.fills:
                for seed in options.seeds:
                    case = Case(nodes, fill, seed, landing)
                    row = compare(case, options.python, options.seconds, options.oracle_seconds)
                    rows.append(row)
                    ours = f"{row.gain} {gained} with {row.moves} moves in {row.seconds:.1f} s"
                    console.print(f"{case}: {ours}; CP-SAT: {row.best} with {row.fewest}")
        console.print(table(rows, gained))
        share, factor = verdict(rows)
        console.print(f"{share:.1%} of the most that is known, {factor:.2f} times the fewest moves")
        for why in failures(rows):
            failed = True
            console.print(why, style="bold red")
    sys.exit(failed)


if __name__ == "__main__":
    main()
