"""`python -m hack.chaos.moving.single` moves the only pod of a Deployment to and fro, in each mode.

Reserver is killed at each write of a move in turn, before the API server has carried out the write
and afterwards, and again from the beginning until there were `--moves` moves. The exit status is 1
if a promise was broken (`hack.promises`), or if a move by SurgeFirst left the Deployment without a
ready pod, with another number of pods than one, or fell back to an eviction.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hack.bed.bed import Bed
from hack.chaos.moving.bed import SCHEDULER, opened
from hack.chaos.moving.deadly import Deadly
from hack.chaos.moving.people import People
from hack.chaos.moving.readiness import Readiness, readiness
from hack.chaos.moving.writes import Strike, Striking
from hack.promises.check import Report, Rules, judge, read_history
from hack.promises.record import Recorder
from reserver.k8s.objects.pod_annotations import SURGE_ANNOTATION
from reserver.moves.phases import MoveMode

_APP = "web"
_ANYWHERE = frozenset({"Landed", "LandedElsewhere", "NotReplaced", "NothingToFollow", "NotMovable"})
"""Without a seat a pod may return to its node, and a killed Reserver may not know its successor."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of the moves of one mode.

    Attributes:
        mode: the mode.
        moves: number of moves.
        kills: number of kills of Reserver.
        readiness: numbers of ready pods meanwhile.
        report: the check of the log of all writes.
        wrongs: breaches of SurgeFirst's promises.
    """

    mode: MoveMode
    moves: int
    kills: int
    readiness: Readiness
    report: Report
    wrongs: list[str]

    def __str__(self) -> str:
        """Return a row of the table."""
        of = self.readiness
        return (
            f"| {self.mode} | {self.moves} | {self.kills} | {of.least} | {of.most} "
            f"| {of.without} | {of.seconds:.1f} s |"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.chaos.moving.single", description=__doc__)
    parser.add_argument("--moves", type=int, default=50, help="in each mode, at least")
    parser.add_argument("--modes", type=MoveMode, nargs="+", default=list(MoveMode))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep histories and logs there")
    options = parser.parse_args()
    outcomes = []
    for mode in options.modes:
        outcomes.append(_outcome(mode, options.moves, options.keep and options.keep / mode))
        print(f"{mode}: {outcomes[-1].report}", *outcomes[-1].wrongs, sep="\n", flush=True)
    print("| mode | moves | kills | fewest ready | most ready | gaps | without a ready pod |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    print(*outcomes, sep="\n")
    sys.exit(any(outcome.report.violations or outcome.wrongs for outcome in outcomes))


def _outcome(mode: MoveMode, moves: int, keep: Path | None) -> Outcome:
    mishaps = Deadly()
    with opened(2, mishaps, keep) as bed:
        people = People(bed)
        people.deploy(_APP, 1)
        people.wait_ready(_APP)
        striking = Striking(bed, mishaps, people, mode)
        with Recorder(bed.kubeconfig, bed.folder, objects=True, moves=True):
            _strike(bed, striking, mode, moves)
            wrongs = _left(people) if mode is MoveMode.SURGE_FIRST else []
        history = read_history(bed.folder)
        rules = Rules(schedulers=frozenset({SCHEDULER}), ends=tuple(bed.reserver.ends))
        found, report = readiness(history, _APP), judge(history, rules)
    if mode is MoveMode.SURGE_FIRST and (found.least, found.most) != (1, 2):
        wrongs.append(f"{found.least} to {found.most} pods were ready, not 1 to 2")
    return Outcome(mode, striking.moves, striking.strikes, found, report, wrongs)


def _strike(bed: Bed, striking: Striking, mode: MoveMode, moves: int) -> None:
    kill = Strike(partial(bed.reserver.kill, 0.0))
    if mode is MoveMode.EVICT_ONLY:
        kill = kill._replace(ends=_ANYWHERE)
    while striking.moves < moves:
        for is_done in (False, True):
            when = "after" if is_done else "before"
            for write in striking.at_each_write(kill, is_done=is_done):
                print(f"{mode} {when} {write}", flush=True)


def _left(people: People) -> list[str]:
    """Return remains of surges, and moves that did not surge."""
    wrongs = [
        f"{item['metadata']['name']} fell back: {item['status']['fallback']}"
        for item in people.moves()
        if item["status"].get("fallback")
    ]
    pods = people.pods(_APP)
    if len(pods) != 1:
        wrongs.append(f"{len(pods)} pods are left")
    for pod in pods:
        owners = [each.kind for each in pod.metadata.owner_references or ()]
        if owners != ["ReplicaSet"]:
            wrongs.append(f"{pod.metadata.name} belongs to {owners}")
        if SURGE_ANNOTATION in (pod.metadata.annotations or {}):
            wrongs.append(f"{pod.metadata.name} has the mark of a move")
    return wrongs


if __name__ == "__main__":
    main()
