"""From a release to the binding of the one pod that waits, with the wake-up and without.

Both take turns in the same run. With it one pod waits at a time. Without it several wait at once,
each for a node of its own, or the run would take hours: the first that is bound makes
kube-scheduler try the others, so what is said of that side is rather too good than too bad.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from contextlib import suppress

from hack.live.scene import Scene, bound, scene
from hack.reserver_process import ReserverProcess, wait_for

_NODES = 20
_ROUNDS = 4
"""How often the two sides take turns."""

_PATIENCE_S = 20.0
"""How long a pod is watched that nobody wakes, in seconds."""

_ASLEEP = """
import reserver.kube.loops.waker as waker
waker.Wake.judge = lambda *_: None
"""
"""What makes reserver's waker find nobody to wake."""

_BATCH = 10  # pods that wait at once without the wake-up
_BACK_OFF = (1.05, 2.0)  # seconds; kube-scheduler lets a pod wait for 1 s after its first attempt
_POLL_S = 0.01


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--trials", type=int, default=200, metavar="N", help="at least 4")


def measure(options: argparse.Namespace) -> bool:
    """Print p50, p99 and the longest of both sides."""
    with scene(_NODES) as stage:
        woken, alone = _both(stage, max(_ROUNDS, options.trials))
    print(f"| wake-up | pods | p50 | p99 | longest | not bound within {_PATIENCE_S:.0f} s |")
    print("|---|---:|---:|---:|---:|---:|")
    print(_row("yes", woken))
    print(_row("no", alone), flush=True)
    return True


def _both(stage: Scene, trials: int) -> tuple[list[float], list[float]]:
    rng = random.Random(1)  # noqa: S311
    woken: list[float] = []
    alone: list[float] = []
    for number in range(_ROUNDS):
        share = trials * (number + 1) // _ROUNDS - len(woken)
        print(f"round {number + 1} of {_ROUNDS}: {share} releases", file=sys.stderr)
        with stage.reserver() as reserver:
            woken += [_one_woken(stage, reserver, rng) for _ in range(share)]
        print(f"the same without the wake-up: {_BATCH} pods", file=sys.stderr)
        with stage.reserver(_ASLEEP) as reserver:
            alone += _many_left_alone(stage, reserver)
    return woken, alone


def _one_woken(stage: Scene, reserver: ReserverProcess, rng: random.Random) -> float:
    """Return the seconds from a release until the only pod that waits is bound."""
    stage.hold(reserver, dict.fromkeys(stage.nodes, "nobody"))
    stage.let_wait(reserver, 1)
    time.sleep(rng.uniform(*_BACK_OFF))
    before, began = bound(reserver), time.monotonic()
    stage.release([rng.choice(stage.nodes)])
    seconds = math.inf
    with suppress(TimeoutError):
        wait_for(lambda: bound(reserver) > before, "the pod is bound", _PATIENCE_S)
        seconds = time.monotonic() - began
    stage.clear(reserver)
    return seconds


def _many_left_alone(stage: Scene, reserver: ReserverProcess) -> list[float]:
    """Return the same for each of many pods, infinity for those that are not bound in time."""
    stage.hold(reserver, dict.fromkeys(stage.nodes, "nobody"))
    stage.let_wait(reserver, _BATCH)
    time.sleep(max(_BACK_OFF))
    before, began = bound(reserver), time.monotonic()
    stage.release(stage.nodes[:_BATCH])
    seconds: list[float] = []
    while len(seconds) < _BATCH and time.monotonic() - began < _PATIENCE_S:
        seconds += [time.monotonic() - began] * (bound(reserver) - before - len(seconds))
        time.sleep(_POLL_S)
    stage.clear(reserver)
    return seconds + [math.inf] * (_BATCH - len(seconds))


def _row(name: str, seconds: list[float]) -> str:
    seconds.sort()
    late = sum(math.isinf(each) for each in seconds)
    numbers = [_rank(seconds, 0.5), _rank(seconds, 0.99), seconds[-1]]
    shown = [f"> {_PATIENCE_S:.0f} s" if math.isinf(n) else f"{n:.3f} s" for n in numbers]
    return f"| {name} | {len(seconds)} | {' | '.join(shown)} | {late} |"


def _rank(ordered: list[float], share: float) -> float:
    """Return the smallest value that so many are not above."""
    return ordered[math.ceil(share * len(ordered)) - 1]
