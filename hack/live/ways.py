"""How pods are best woken: by nominating a node (what reserver does), or by a change of the pod.

With 1, 100 and 1,000 pods waiting: the time from the release to the last binding that it allows,
the Filter calls that kube-scheduler makes meanwhile, and the pods that are patched.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass

from hack.live.scene import CPUS, Scene, bound, scene
from hack.reserver_process import ReserverProcess, wait_for

_NODES = 20
_WAYS = ("nomination", "change")
_TRIALS = {1: 20, 100: 5, 1000: 3}
"""How many trials there are, by the number of pods waiting."""

_RELEASED = 5  # nodes
_CHANGE = """
import reserver.scheduling.wake as wake
from reserver.scheduling.effects import Retry
wake._send_back = lambda pod, node: Retry(pod, attempts=1)
"""


@dataclass(frozen=True)
class Trial:
    """What one release led to: seconds until the last binding, calls, pods woken."""

    seconds: float
    filters: float
    woken: float


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--waiting", type=int, nargs="+", choices=_TRIALS, default=_TRIALS)
    parser.add_argument("--way", nargs="+", choices=_WAYS, default=_WAYS)


def measure(options: argparse.Namespace) -> bool:
    """Print one line for each way and number of waiting pods."""
    print("| waiting | woken by | bound within, median | longest | Filter calls | pods woken |")
    print("|---|---|---|---|---|---|")
    with scene(_NODES) as stage:
        for way in options.way:
            with stage.reserver(_CHANGE if way == "change" else "") as reserver:
                for number in options.waiting:
                    print(f"{way}, {number} waiting", file=sys.stderr)
                    done = [_trial(stage, reserver, number) for _ in range(_TRIALS[number])]
                    print(_row(number, way, done), flush=True)
    return True


def _trial(stage: Scene, reserver: ReserverProcess, number: int) -> Trial:
    stage.hold(reserver, dict.fromkeys(stage.nodes, "nobody"))
    stage.let_wait(reserver, number)
    _wait_quiet(reserver)
    filters, woken, before = _filters(reserver), _woken(reserver), bound(reserver)
    fit = min(number, _RELEASED * CPUS)
    began = time.monotonic()
    stage.release(stage.nodes[:_RELEASED])
    wait_for(lambda: bound(reserver) - before >= fit, "all that fit are bound", 60)
    seconds = time.monotonic() - began
    _wait_quiet(reserver)
    result = Trial(seconds, _filters(reserver) - filters, _woken(reserver) - woken)
    stage.clear(reserver)
    return result


def _woken(reserver: ReserverProcess) -> float:
    return reserver.metric("reserver_woken_pods_total")


def _filters(reserver: ReserverProcess) -> float:
    outcomes = ("passed", "refused")
    names = [f'reserver_extender_calls_total{{outcome="{o}",verb="filter"}}' for o in outcomes]
    return sum(reserver.metric(name) for name in names)


def _wait_quiet(reserver: ReserverProcess) -> None:
    """Return once kube-scheduler has made no call for a second."""
    last = [_filters(reserver), time.monotonic()]

    def is_quiet() -> bool:
        calls = _filters(reserver)
        if calls != last[0]:
            last[:] = [calls, time.monotonic()]
        return time.monotonic() - last[1] > 1

    wait_for(is_quiet, "kube-scheduler is quiet", 180)


def _row(number: int, way: str, done: list[Trial]) -> str:
    seconds = [trial.seconds for trial in done]
    filters = statistics.median(trial.filters for trial in done)
    woken = statistics.median(trial.woken for trial in done)
    times = f"{statistics.median(seconds):.2f} s | {max(seconds):.2f} s"
    return f"| {number:,} | {way} | {times} | {filters:.0f} | {woken:.0f} |"
