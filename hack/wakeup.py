"""Measures how waiting pods are best woken when a hold ends, on the real kube-scheduler.

    python -m hack.wakeup [--waiting N ...] [--way nomination|change]

Nominating a node (what reserver does) against a plain change of the pod, with 1, 100 and 1,000 pods
waiting: the time from the release to the last binding that it allows, the Filter calls that
kube-scheduler makes meanwhile, and the pods that are patched. The numbers are in docs/adr/0004.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config

from hack.controlplane.cluster import ControlPlane, create_nodes, render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for

ROOT = Path(__file__).parents[1]
SCHEDULER_CONFIG = ROOT / "scheduler-config/kube-scheduler.yaml"
STORE, NAMESPACE = "reservations", "reserver-system"
NODES, RELEASED, CPUS = 20, 5, 4
PLAIN = """
import reserver.scheduling.wake as wake
from reserver.scheduling.effects import Retry
wake._send_back = lambda pod, node: Retry(pod, attempts=1)
"""
"""What makes reserver change an annotation instead of nominating a node."""

WAYS = ("nomination", "change")
TRIALS = {1: 20, 100: 5, 1000: 3}


@dataclass(frozen=True)
class Trial:
    """What one release led to: seconds until the last binding, calls, pods woken."""

    seconds: float
    filters: float
    woken: float


def main() -> None:
    """Prints one line for each way and number of waiting pods."""
    parser = argparse.ArgumentParser(description="Measures how waiting pods are best woken.")
    parser.add_argument("--waiting", type=int, nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--way", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    print("| waiting | woken by | bound within, median | longest | Filter calls | pods woken |")
    print("|---|---|---|---|---|---|")
    with ControlPlane(controller_manager=False) as plane, tempfile.TemporaryDirectory() as folder:
        api: Any = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
        api.create_namespace({"metadata": {"name": NAMESPACE}})
        labels = {"reserver.io/store": "true"}
        store = {"metadata": {"name": STORE, "labels": labels}}
        api.create_namespaced_config_map(NAMESPACE, store)
        nodes = create_nodes(plane.kubeconfig, NODES, cpu=str(CPUS))
        for way in options.way:
            with _reserver(plane, Path(folder), way) as reserver:
                for waiting in options.waiting:
                    print(f"{way}, {waiting} waiting", file=sys.stderr)
                    trials = range(TRIALS[waiting])
                    done = [_trial(api, reserver, nodes, waiting) for _ in trials]
                    print(_row(waiting, way, done), flush=True)


@contextmanager
def _reserver(plane: ControlPlane, folder: Path, way: str) -> Iterator[ReserverProcess]:
    reserver = ReserverProcess(plane.kubeconfig, folder / "log")
    if way != "nomination":
        reserver.prepare(PLAIN)
    with reserver:
        rendered = folder / "scheduler.yaml"
        rendered.write_text(
            render_scheduler_config(
                SCHEDULER_CONFIG, kubeconfig=plane.kubeconfig, port=reserver.port
            )
        )
        plane.start_scheduler(rendered)
        yield reserver
        plane.stop_scheduler()


def _trial(api: Any, reserver: ReserverProcess, nodes: list[str], waiting: int) -> Trial:  # noqa: ANN401 - the client has no types of use here
    held = {node: _hold(node) for node in nodes}
    _patch(api, held)
    wait_for(lambda: _value(reserver, 'reserver_reservations{phase="Active"}') == NODES, "held")
    for number in range(waiting):
        api.create_namespaced_pod("default", _pod(number))
    wait_for(lambda: _value(reserver, "reserver_waiting_pods") == waiting, "all wait", 180)
    _wait_quiet(reserver)
    filters, woken = _filters(reserver), _value(reserver, "reserver_woken_pods_total")
    bound = _value(reserver, _BOUND)
    fit = min(waiting, RELEASED * CPUS)
    began = time.monotonic()
    _patch(api, dict.fromkeys(nodes[:RELEASED]))
    wait_for(lambda: _value(reserver, _BOUND) - bound >= fit, "all that fit are bound", 60)
    seconds = time.monotonic() - began
    _wait_quiet(reserver)
    result = Trial(
        seconds,
        _filters(reserver) - filters,
        _value(reserver, "reserver_woken_pods_total") - woken,
    )
    api.delete_collection_namespaced_pod("default", grace_period_seconds=0)
    wait_for(lambda: not api.list_namespaced_pod("default", limit=1).items, "all are gone", 120)
    wait_for(lambda: _value(reserver, "reserver_waiting_pods") == 0, "nobody waits")
    _patch(api, dict.fromkeys(nodes))
    return result


_BOUND = 'reserver_extender_calls_total{outcome="bound",verb="bind"}'


def _value(reserver: ReserverProcess, name: str) -> float:
    return reserver.metric(name)


def _filters(reserver: ReserverProcess) -> float:
    outcomes = ("passed", "refused")
    names = [f'reserver_extender_calls_total{{outcome="{o}",verb="filter"}}' for o in outcomes]
    return sum(reserver.metric(name) for name in names)


def _wait_quiet(reserver: ReserverProcess) -> None:
    """Returns once kube-scheduler has made no call for a second."""
    last = [_filters(reserver), time.monotonic()]

    def is_quiet() -> bool:
        calls = _filters(reserver)
        if calls != last[0]:
            last[:] = [calls, time.monotonic()]
        return time.monotonic() - last[1] > 1

    wait_for(is_quiet, "kube-scheduler is quiet", 180)


def _hold(node: str) -> str:
    owner = "owners: [{pod: {name: nobody, namespace: default}}]"
    return f"{owner}\nnode: {node}\nresources: {{cpu: {CPUS}}}\nttl: 24h\n"


def _pod(number: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "main", "image": "none", "resources": resources}
    spec = {"schedulerName": "reserver-scheduler", "containers": [container]}
    return {"metadata": {"name": f"p-{number}"}, "spec": spec}


def _patch(api: Any, data: dict[str, str] | dict[str, None]) -> None:  # noqa: ANN401 - as above
    api.patch_namespaced_config_map(STORE, NAMESPACE, {"data": data})


def _row(waiting: int, way: str, done: list[Trial]) -> str:
    seconds = [trial.seconds for trial in done]
    filters = statistics.median(trial.filters for trial in done)
    woken = statistics.median(trial.woken for trial in done)
    times = f"{statistics.median(seconds):.2f} s | {max(seconds):.2f} s"
    return f"| {waiting:,} | {way} | {times} | {filters:.0f} | {woken:.0f} |"


if __name__ == "__main__":
    main()
