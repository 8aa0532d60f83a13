"""How soon owners land on their seat, and others beside what is held, on 1,000 nodes.

kube-scheduler has its default plugins and sampling: it looks at 420 of them or so.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from hack.live.scene import Scene, scene
from hack.reserver_process import ReserverProcess, wait_for

_NODES = 1000
_REFUSED = 'reserver_extender_calls_total{outcome="refused",verb="filter"}'
_OUTSIDE = 100
"""Trials with a pod that only one node has room for."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    choices = range(1, _NODES + 1)
    parser.add_argument("--trials", type=int, default=500, choices=choices, metavar="OWNERS")


def measure(options: argparse.Namespace) -> bool:
    """Print what became of both."""
    with scene(_NODES) as stage:
        rows = [_owners(stage, options.trials), _outside(stage)]
    print("| pods | on the node they should be on | refused first | p50 | p99 | longest |")
    print("|---|---:|---:|---:|---:|---:|")
    print("\n".join(rows))
    return True


def _owners(stage: Scene, trials: int) -> str:
    """Return what became of owners of a seat each, created one after the other."""
    rng = random.Random(1)  # noqa: S311
    seats = {f"owner-{n}": seat for n, seat in enumerate(rng.sample(stage.nodes, trials))}
    with stage.reserver() as reserver:
        stage.hold(reserver, {seat: owner for owner, seat in seats.items()})
        print(f"{trials} owners, one after the other", file=sys.stderr)
        landed = [_land(stage, reserver, owner, seat) for owner, seat in seats.items()]
        stage.clear(reserver)
    return _row("owners", landed)


def _outside(stage: Scene) -> str:
    """Return what became of pods that fit on one node only, as everything else is held."""
    rng = random.Random(2)  # noqa: S311
    free = rng.choice(stage.nodes)
    with stage.reserver() as reserver:
        stage.hold(reserver, {node: "nobody" for node in stage.nodes if node != free})
        print(f"{_OUTSIDE} pods with room on one node only", file=sys.stderr)
        landed = []
        for number in range(_OUTSIDE):
            landed.append(_land(stage, reserver, f"stranger-{number}", free))
            stage.clear(reserver)
    # Where the node was in the sample, nothing was shown.
    return _row("others, first sample held", [each for each in landed if each[2]])


def _land(
    stage: Scene, reserver: ReserverProcess, name: str, right: str
) -> tuple[float, bool, bool]:
    """Return how long a pod took to be bound, if that is right, and if it was refused before."""
    refused = reserver.metric(_REFUSED)
    began = time.monotonic()
    stage.create(name)
    node = wait_for(lambda: stage.node_of(name), f"{name} is bound")
    seconds = time.monotonic() - began
    return seconds, node == right, reserver.metric(_REFUSED) > refused


def _row(name: str, landed: list[tuple[float, bool, bool]]) -> str:
    seconds = sorted(each[0] for each in landed)
    right = sum(each[1] for each in landed)
    refused = sum(each[2] for each in landed)
    p50, p99 = (seconds[int(share * (len(seconds) - 1))] for share in (0.5, 0.99))
    numbers = f"{p50:.3f} s | {p99:.3f} s | {seconds[-1]:.3f} s"
    return f"| {name} | {right} of {len(landed)} | {refused} | {numbers} |"
