"""`python -m hack.moving` moves pods on full nodes while others take every hole.

First each pod has its seat before it is evicted (ReserveFirst), then the same pods move without one
(EvictOnly), on a control plane of its own each. The exit status is 1 if a pod that had a seat was
evicted and did not land on it, or if a seat is left.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import quantiles
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from hack.chaos.world import ROOT, SCHEDULER_CONFIG, install
from hack.controlplane.cluster import ControlPlane, create_nodes, render_scheduler_config
from hack.controlplane.kubeconfig import kubectl
from hack.reserver_process import ReserverProcess, wait_for
from reserver.migration.move import Mode

MOVES = ROOT / "scheduler-config/components/moves"
OBJECTS = ("reserver.io", "v1alpha1")
NAMESPACE = "default"
SCHEDULER = "moving"
CORES = 4
"""Of a node. Each pod takes one, so that each hole fits each pod."""

FULL = 0.95
ENDED = {"Succeeded", "Failed", "Aborted"}
_AT_ONCE = 8


@dataclass(frozen=True)
class Outcome:
    """What became of one way of moving.

    Attributes:
        ends: how many moves ended for each reason.
        landing_s: seconds from each eviction until the replacement was bound.
        stranded: pods that were evicted and whose replacement had no place at the end.
        seats: that were left.
    """

    ends: Counter[str]
    landing_s: list[float]
    stranded: int
    seats: int

    def show(self, mode: Mode) -> str:
        """Return a row of the table."""
        cut = quantiles(self.landing_s, n=100) if len(self.landing_s) > 1 else [0.0] * 99
        waited = sum(seconds > 1 for seconds in self.landing_s) + self.stranded
        ends = ", ".join(f"{reason} {count}" for reason, count in self.ends.most_common())
        return (
            f"| {mode} | {len(self.landing_s)} | {cut[49]:.2f} s | {cut[98]:.2f} s | {waited} "
            f"| {self.stranded} | {ends} |"
        )


class Storm:
    """A full cluster, whose pods move."""

    def __init__(self, plane: ControlPlane, options: argparse.Namespace) -> None:
        api = config.new_client_from_config(str(plane.kubeconfig))
        self._core: Any = client.CoreV1Api(api)
        self._apps: Any = client.AppsV1Api(api)
        self._objects: Any = client.CustomObjectsApi(api)
        self._options = options
        self._rng = random.Random(options.seed)  # noqa: S311 - repeatable
        self._over = threading.Event()

    def fill(self, nodes: list[str]) -> None:
        """Fill the nodes: pods that stay, those that are to move, and those that want all else."""
        slots = [node for node in nodes for _ in range(CORES)]
        self._rng.shuffle(slots)
        moving, taken = self._options.moves, int(len(slots) * FULL)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._stay, range(taken - moving), slots))
            list(pool.map(lambda number: self._deploy(f"web-{number}", 1), range(moving)))
        wait_for(lambda: len(self._bound("web-")) == moving, "those that are to move are bound")
        holes = len(slots) - taken
        self._deploy("greedy", 2 * holes)
        wait_for(lambda: len(self._bound("greedy-")) >= holes, "the greedy have taken all holes")

    def run(self, mode: Mode) -> Outcome:
        """Move pods; return what became of it."""
        churning = threading.Thread(target=self._churn)
        churning.start()
        try:
            pods = sorted(self._bound("web-"), key=lambda pod: str(pod.metadata.name))
            for number, pod in enumerate(pods):
                self._move(f"move-{number}", pod.metadata.name, mode)
            wait_for(lambda: self._moves_left() == 0, "all moves end", self._options.timeout + 60)
        finally:
            self._over.set()
            churning.join()
        statuses = [item["status"] for item in self._list("podmoves")]
        evicted = [status for status in statuses if "evictedAt" in status]
        landed = [status for status in evicted if "replacement" in status]
        seats = len(self._list("reservations"))
        return Outcome(
            ends=Counter(status["reason"] for status in statuses),
            landing_s=[_seconds(each["evictedAt"], each["finishedAt"]) for each in landed],
            stranded=len(evicted) - len(landed),
            seats=seats,
        )

    def _churn(self) -> None:
        """Have holes open up all over, as pods end: the greedy who wait want each of them."""
        while not self._over.wait(1 / self._options.churn):
            bound = self._bound("greedy-")
            if bound:
                with suppress(ApiException):
                    name = self._rng.choice(bound).metadata.name
                    self._core.delete_namespaced_pod(name, NAMESPACE, grace_period_seconds=0)

    def _stay(self, number: int, node: str) -> None:
        self._core.create_namespaced_pod(
            NAMESPACE,
            {"metadata": {"name": f"stay-{number}"}, "spec": {**_spec(), "nodeName": node}},
        )

    def _deploy(self, name: str, replicas: int) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": _spec()}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        body = {"metadata": {"name": name}, "spec": spec}
        self._apps.create_namespaced_deployment(NAMESPACE, body)

    def _move(self, name: str, pod: str, mode: Mode) -> None:
        spec = {"pod": {"name": pod}, "mode": mode, "timeout": f"{self._options.timeout}s"}
        body = {"apiVersion": "/".join(OBJECTS), "kind": "PodMove", "metadata": {"name": name}}
        where = (*OBJECTS, NAMESPACE, "podmoves")
        self._objects.create_namespaced_custom_object(*where, {**body, "spec": spec})

    def _bound(self, prefix: str) -> list[Any]:
        return [
            pod
            for pod in self._core.list_namespaced_pod(NAMESPACE, resource_version="0").items
            if pod.metadata.name.startswith(prefix)
            and pod.spec.node_name
            and pod.metadata.deletion_timestamp is None
        ]

    def _list(self, plural: str) -> list[Mapping[str, Any]]:
        found = self._objects.list_namespaced_custom_object(*OBJECTS, NAMESPACE, plural)
        items: list[Mapping[str, Any]] = found["items"]
        return items

    def _moves_left(self) -> int:
        phases = (item.get("status", {}).get("phase") for item in self._list("podmoves"))
        return sum(phase not in ENDED for phase in phases)


def _spec() -> dict[str, Any]:
    requests = {"requests": {"cpu": "1"}}
    return {
        "schedulerName": SCHEDULER,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "none", "resources": requests}],
    }


def _seconds(before: str, after: str) -> float:
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()


@contextmanager
def _cluster(options: argparse.Namespace) -> Iterator[tuple[ControlPlane, list[str]]]:
    """Run a control plane with Reserver, which carries out moves, and a scheduler that asks it."""
    with tempfile.TemporaryDirectory() as name, ControlPlane() as plane:
        folder = Path(name)
        account = install(plane.kubeconfig, folder)
        files = ("-f", str(MOVES / "crd.yaml"), "-f", str(MOVES / "rbac.yaml"))
        kubectl(plane.kubeconfig, "apply", *files)
        crd = "crd/podmoves.reserver.io"
        kubectl(plane.kubeconfig, "wait", "--for=condition=Established", crd)
        nodes = create_nodes(plane.kubeconfig, options.nodes, cpu=str(CORES))
        flags = ("--pod-moves", "--default-quota", "none", "--log-level", "info")
        with ReserverProcess(account, options.log or folder / "log", *flags) as reserver:
            scheduler = folder / "scheduler.yaml"
            rendered = render_scheduler_config(
                SCHEDULER_CONFIG,
                kubeconfig=plane.kubeconfig,
                port=reserver.port,
                scheduler_name=SCHEDULER,
            )
            scheduler.write_text(rendered)
            plane.start_scheduler(scheduler, SCHEDULER)
            yield plane, nodes


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.moving", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--moves", type=int, default=60, help="how many pods move")
    parser.add_argument("--churn", type=float, default=10.0, help="holes that open up a second")
    parser.add_argument("--timeout", type=int, default=120, help="of each move, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", type=Mode, nargs="+", default=list(Mode))
    parser.add_argument("--log", type=Path, help="of Reserver; it stays")
    options = parser.parse_args()
    print("| mode | landed | p50 | p99 | waited over 1 s | stranded | ends |")
    print("|---|---:|---:|---:|---:|---:|---|", flush=True)
    failed = False
    for mode in options.modes:
        with _cluster(options) as (plane, nodes):
            storm = Storm(plane, options)
            storm.fill(nodes)
            outcome = storm.run(mode)
        print(outcome.show(mode), flush=True)
        had_seats = mode is Mode.RESERVE_FIRST
        failed |= bool(outcome.seats) or (had_seats and bool(outcome.stranded))
        failed |= had_seats and outcome.ends["Landed"] != len(outcome.landing_s)
    sys.exit(failed)


if __name__ == "__main__":
    main()
