"""Measures how soon owners land on their seat, and others beside what is held, on 1,000 nodes.

    python -m hack.seats --trials 500

The real kube-scheduler with its default plugins and sampling: on 1,000 nodes it looks at 420 or so.
The numbers are in docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from hack.reserver_process import ReserverProcess, wait_for
from hack.wakeup.scene import Scene, pod, scene, specification

NODES = 1000
_REFUSED = 'reserver_extender_calls_total{outcome="refused",verb="filter"}'
_ACTIVE = 'reserver_reservations{phase="Active"}'
_OUTSIDE = 100
"""Trials with a pod that only one node has room for."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.seats",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=500, metavar="N", help="owners")
    options = parser.parse_args()
    if not 1 <= options.trials <= NODES:
        parser.error(f"--trials: {options.trials} is out of range; write 1 to {NODES}")
    before = os.getloadavg()[0]
    with scene(NODES) as stage:
        rows = [_owners(stage, options.trials), _outside(stage)]
    print("| pods | on the node they should be on | refused first | p50 | p99 | longest |")
    print("|---|---:|---:|---:|---:|---:|")
    print("\n".join(rows))
    print(f"\nLoad average: {before:.1f} before, {os.getloadavg()[0]:.1f} after.")


def _owners(stage: Scene, trials: int) -> str:
    """Return what became of owners of a seat each, created one after the other."""
    rng = random.Random(1)  # noqa: S311
    seats = {f"owner-{n}": seat for n, seat in enumerate(rng.sample(stage.nodes, trials))}
    with stage.reserver() as reserver:
        stage.write({node: specification(node, owner) for owner, node in seats.items()})
        wait_for(lambda: reserver.metric(_ACTIVE) == trials, "all seats are held")
        print(f"{trials} owners, one after the other", file=sys.stderr)
        landed = [_land(stage, reserver, owner, seat) for owner, seat in seats.items()]
        stage.clear(reserver)
    return _row("owners", landed)


def _outside(stage: Scene) -> str:
    """Return what became of pods that fit on one node only, as everything else is held."""
    rng = random.Random(2)  # noqa: S311
    free = rng.choice(stage.nodes)
    with stage.reserver() as reserver:
        held = [node for node in stage.nodes if node != free]
        stage.write({node: specification(node, "nobody") for node in held})
        wait_for(lambda: reserver.metric(_ACTIVE) == len(held), "all but one node is held")
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
    stage.api.create_namespaced_pod("default", pod(name))
    node: str = wait_for(
        lambda: stage.api.read_namespaced_pod(name, "default").spec.node_name, f"{name} is bound"
    )
    seconds = time.monotonic() - began
    return seconds, node == right, reserver.metric(_REFUSED) > refused


def _row(name: str, landed: list[tuple[float, bool, bool]]) -> str:
    seconds = sorted(each[0] for each in landed)
    right = sum(each[1] for each in landed)
    refused = sum(each[2] for each in landed)
    p50, p99 = (seconds[int(share * (len(seconds) - 1))] for share in (0.5, 0.99))
    numbers = f"{p50:.3f} s | {p99:.3f} s | {seconds[-1]:.3f} s"
    return f"| {name} | {right} of {len(landed)} | {refused} | {numbers} |"


if __name__ == "__main__":
    main()
