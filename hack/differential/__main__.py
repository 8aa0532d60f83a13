"""`python -m hack.differential` asks kube-scheduler and `fit` about random pods, and compares."""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from hack.controlplane.process import StartError
from hack.differential import pods
from hack.differential.draw import Json
from hack.differential.verdict import Verdict, judge, nodes_agree, reasons_agree
from hack.differential.world import World, world
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.scheduling.fit import fit
from reserver.scheduling.state import State

_QUOTED = re.compile(r'"[^"]*"|\. not found$')
_ATTEMPTS = 3
"""A pod on which there is no agreement is asked for again: kube-scheduler may have seen less."""


@dataclass
class Score:
    """The comparisons of Reserver with kube-scheduler.

    Attributes:
        pairs: compared pairs of a cluster and a pod.
        nowhere: pairs whose pod fits on no node.
        somewhere: pairs whose pod fits on some nodes, and not on others.
        asked_again: repeated questions to kube-scheduler before both agreed.
        differences: the differences.
        reasons: messages of kube-scheduler in which a reason was compared, by reason.
        decisive: cases in which one plugin alone kept a pod from a node, by plugin.
    """

    pairs: int = 0
    nowhere: int = 0
    somewhere: int = 0
    asked_again: int = 0
    differences: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    decisive: Counter[str] = field(default_factory=Counter)

    def agreed(self, theirs: Verdict, pod: Pod, snapshot: Snapshot) -> None:
        """Counts a pair on which both say the same."""
        names = snapshot.node_names()
        self.pairs += 1
        self.nowhere += not theirs.nodes
        self.somewhere += 0 < len(theirs.nodes) < len(names)
        said = [*theirs.reasons, theirs.everywhere] if theirs.everywhere else theirs.reasons
        self.reasons.update(_QUOTED.sub("…", words) for words in said)
        for name in names:
            plugins = {reason.plugin for reason in fit(pod, name, snapshot)}
            self.decisive.update(plugins if len(plugins) == 1 else ())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.differential", description=__doc__)
    parser.add_argument("--pairs", type=int, default=2000, help="of a cluster and a pod")
    parser.add_argument("--pods", type=int, default=40, help="that each cluster is asked about")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))  # noqa: S311
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it would not stop what was started
    print(f"seed {options.seed}", flush=True)
    began, score = time.monotonic(), Score()
    draw = random.Random(options.seed)  # noqa: S311 (not a secret)
    try:
        with world() as found:
            clusters = -(-options.pairs // options.pods)
            for number in range(clusters):
                _compare_cluster(found, draw, f"c{number}", options.pods, score)
                print(f"\r{score.pairs} pairs", end="", file=sys.stderr, flush=True)
    except StartError as error:
        sys.exit(str(error))
    print(file=sys.stderr)
    _report(score, clusters, time.monotonic() - began)
    sys.exit(1 if score.differences else 0)


def _compare_cluster(
    found: World, draw: random.Random, prefix: str, count: int, score: Score
) -> None:
    names, drawn = found.build(draw, prefix)
    asked = [
        pods.pending(draw, f"{prefix}-p{number}", names, drawn.names) for number in range(count)
    ]
    _tally(asked, score, found)


def _tally(asked: list[Json], score: Score, found: World) -> None:
    open_ones = {pod["metadata"]["name"]: pod for pod in asked}
    for attempt in range(_ATTEMPTS):
        verdicts = found.ask(list(open_ones.values()))
        state, pending = found.state()
        differing = {}
        for name, theirs in verdicts.items():
            if problem := _difference(theirs, pending[name], state):
                differing[name] = problem
                continue
            score.agreed(theirs, pending[name], state.snapshot)
            score.asked_again += attempt > 0
        if not differing:
            return
        if attempt + 1 < _ATTEMPTS:
            time.sleep(1)
            open_ones = dict(_renamed(open_ones[name]) for name in differing)
    score.pairs += len(differing)
    for name, problem in differing.items():
        score.differences.append(f"{problem}\n  {json.dumps(open_ones[name])}")


def _renamed(pod: Json) -> tuple[str, Json]:
    again = copy.deepcopy(pod)
    again["metadata"]["name"] += "x"
    return again["metadata"]["name"], again


def _difference(theirs: Verdict, pod: Pod, state: State) -> str:
    ours = judge(pod, state.snapshot)
    if not nodes_agree(theirs, ours):
        return f"{pod.name}: kube-scheduler {theirs}, fit {ours}"
    if not theirs.nodes and not reasons_agree(theirs, pod, state.snapshot):
        return f"{pod.name}: reasons of kube-scheduler {theirs}, of fit {ours}"
    return ""


def _report(score: Score, clusters: int, seconds: float) -> None:
    for difference in score.differences:
        print(difference)
    print("Reasons that were compared, by the messages that give them:")
    for reason, count in score.reasons.most_common():
        print(f"{count:6} {reason}")
    print("What alone kept a pod from a node, by how often:")
    for plugin, count in score.decisive.most_common():
        print(f"{count:6} {plugin}")
    agreed = score.pairs - len(score.differences)
    print(
        f"{agreed} of {score.pairs} pairs agree ({agreed / max(score.pairs, 1):.2%}), on {clusters}"
        f" clusters in {seconds:.0f} s: {score.somewhere} fit on some nodes, {score.nowhere} on"
        f" none, {score.asked_again} asked again."
    )


if __name__ == "__main__":
    main()
