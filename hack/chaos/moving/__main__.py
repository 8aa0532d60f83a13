"""`python -m hack.chaos.moving` moves pods on full nodes while other pods take all free room.

Pods are moved one by one, nodes are drained, and rounds of rebalancing run concurrently. First each
pod has its seat before it is evicted (ReserveFirst), then a copy of it is ready there (SurgeFirst),
then neither (EvictOnly: PodMoves without a seat, `kubectl drain`, rounds that evict), with the same
seed, each on a new control plane. Moves of pods with local volumes, or to nodes that close, run
concurrently, and two namespaces have groups of equal names. The log of all writes is checked
(`hack.promises`). The exit status is 1 if a promise was broken; if a pod that had a seat waited for
room, or has no node at the end; if a pod with a local volume was moved; or if a seat is left.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.bed.bed import Bed
from hack.bed.mishaps import Mishaps
from hack.chaos.faults import SEEN, Faults
from hack.chaos.moving.bed import SCHEDULER, opened
from hack.chaos.moving.hardships import SHUT, wrongs_of
from hack.chaos.moving.landings import Landings, landings
from hack.chaos.moving.people import GREEDY, People
from hack.chaos.moving.storm import Plan, Storm
from hack.chaos.scale import Scale
from hack.promises.check import Report, Rules, judge, read_history
from hack.promises.history import with_outages
from hack.promises.record import Recorder
from reserver.moves.phases import MoveMode

STRIKES = {
    "kill-reserver": 6,
    "restart-apiserver": 2,
    "restart-scheduler": 2,
    "restart-controllers": 2,
    "freeze": 3,
}
"""Number of strikes by fault with `--faults`."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one mode.

    Attributes:
        mode: the mode.
        ends: ended PodMoves by reason.
        landings: the landings after evictions.
        report: the check of the log of all writes.
        faults: number of faults by kind; empty for none.
        wrongs: faults of hard moves, and hard moves that never occurred.
    """

    mode: MoveMode
    ends: Counter[str]
    landings: Landings
    report: Report
    faults: str
    wrongs: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether all promises held; with faults, pods may wait for a dependency that is away."""
        if self.report.violations or self.wrongs:
            return False
        waited = self.landings.stranded + (0 if self.faults else self.landings.refused)
        return not waited or self.mode is MoveMode.EVICT_ONLY

    def __str__(self) -> str:
        """Return a row of the table."""
        of, ends = self.landings, ", ".join(f"{why} {n}" for why, n in self.ends.most_common())
        return (
            f"| {self.mode} | {len(of.each)} | {of.refused} | {of.stranded} "
            f"| {of.percentile(50):.2f} s | {of.percentile(99):.2f} s | {ends} |"
        )


def main() -> None:
    """The command line."""
    options = _options()
    plan = Plan(
        moves=options.moves,
        drains=options.drains,
        rounds=options.rounds,
        churn=options.churn,
        timeout_s=options.timeout,
        seconds=options.seconds,
        seed=options.seed,
        goes_on=options.faults,
    )
    outcomes = [_outcome(options, plan, mode) for mode in options.modes]
    print("| mode | evicted | waited for room | never landed | p50 | p99 | PodMoves |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for outcome in outcomes:
        print(outcome)
    sys.exit(not all(outcome.is_good for outcome in outcomes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hack.chaos.moving", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--moves", type=int, default=40, help="how many pods are moved one by one")
    parser.add_argument("--drains", type=int, default=4, help="how many nodes are drained")
    parser.add_argument("--rounds", type=int, default=4, help="of rebalancing")
    parser.add_argument("--churn", type=float, default=10.0, help="holes that open up a second")
    parser.add_argument("--timeout", type=int, default=60, help="of each move, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", type=MoveMode, nargs="+", default=list(MoveMode))
    parser.add_argument(
        "--faults", action="store_true", help="kill, restart and stop what runs; pods move on"
    )
    parser.add_argument("--seconds", type=float, default=90.0, help="that faults strike at least")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep histories and logs there")
    return parser.parse_args()


def _outcome(options: argparse.Namespace, plan: Plan, mode: MoveMode) -> Outcome:
    """Run a storm in one mode."""
    mishaps = Mishaps(plan.seed)
    with opened(options.nodes, mishaps, options.keep and options.keep / mode) as bed:
        people = People(bed)
        storm = Storm(bed, people, plan, mode)
        storm.fill()
        faults = _faults(options, plan, bed)
        with Recorder(bed.kubeconfig, bed.folder, objects=True, moves=True):
            storm.rage(faults)
            ends = Counter(item["status"]["reason"] for item in people.moves())
            hard, closed = storm.hardships.ends(), storm.hardships.closed
        history = with_outages(read_history(bed.folder), faults.outages)
        rules = Rules(
            schedulers=frozenset({SCHEDULER}),
            grace_s=SEEN,
            ends=faults.ends,
            pauses=faults.pauses,
        )
        report = judge(history, rules)
        print(f"{mode}, seed {plan.seed}, {faults}: {report}", flush=True)
        wrongs = _wrongs(mode, hard, closed)
        # A pod that moves to a closing node may wait for the next node.
        found = landings(history, {GREEDY, *SHUT})
        return Outcome(mode, ends, found, report, str(faults) if options.faults else "", wrongs)


def _wrongs(mode: MoveMode, hard: Mapping[str, Counter[str]], closed: int) -> tuple[str, ...]:
    """Print the ends of hard moves; return their faults."""
    if mode is MoveMode.EVICT_ONLY:
        return ()
    for what, reasons in hard.items():
        print(f"{mode}, {what}:", ", ".join(f"{n} {why}" for why, n in reasons.most_common()))
    print(f"{mode}: {closed} targets closed while a pod moved there", flush=True)
    wrongs = tuple(wrongs_of(hard, closed))
    print(*wrongs, sep="\n", flush=True)
    return wrongs


def _faults(options: argparse.Namespace, plan: Plan, bed: Bed) -> Faults:
    strikes = STRIKES if options.faults else {}
    scale = Scale(seconds=plan.seconds, strikes=strikes)
    return Faults(plan.seed, scale, strikes, bed, bed.folder / "faults.jsonl")


if __name__ == "__main__":
    main()
