"""One priority storm: all trials at once, and what became of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hack.bed.api import Api, ApiFault, at_once
from hack.controlplane.nodes import create_nodes
from hack.preemption.trials import (
    HIGH,
    LARGE,
    LOW,
    PRIORITIES,
    SMALL,
    StormPod,
    Trial,
    nodes_needed,
    trials,
)
from hack.reserver_process import wait_for

_STORES = "/api/v1/namespaces/reserver-system/configmaps"
_PATIENCE_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a storm.

    Attributes:
        trials: the number of trials.
        landed: preemptors that landed.
        useful: pods evicted for a preemptor that landed.
        useless: pods evicted from a node with a hold where no preemptor landed.
        elsewhere: pods evicted from a node without a hold where no preemptor landed.
        owners: owners that landed on their hold (`seat_owners`).
        seconds: from the first preemptor until the last judgement.
    """

    trials: int
    landed: int
    useful: int
    useless: tuple[str, ...]
    elsewhere: tuple[str, ...]
    owners: int
    seconds: float


class Storm:
    """One priority storm in a namespace and on nodes of its own, as a context manager.

    Args:
        kubeconfig: of an administrator.
        scheduler: the name of the kube-scheduler to storm.
        count: how many trials.
        blind: Reserver is not asked before pods are evicted. Then nobody comes who could take room
            that was made for another before Reserver sees for whom it was made.
    """

    def __init__(
        self, kubeconfig: Path, scheduler: str, count: int, *, blind: bool = False
    ) -> None:
        self._kubeconfig = kubeconfig
        self._scheduler = scheduler
        self._api = Api(kubeconfig)
        self._count = count
        self._blind = blind
        self._name = f"storm-{time.time_ns() // 1_000_000:x}"
        self._pods = f"/api/v1/namespaces/{self._name}/pods"
        self._nodes: list[str] = []
        self._trials: list[Trial] = []
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._node_of: dict[str, str] = {}
        self._refused: set[str] = set()
        self._evicted: set[str] = set()
        self._seconds = 0.0

    def __enter__(self) -> Self:
        """Create the nodes, the pods that fill them, and the holds."""
        self._api.create("/api/v1/namespaces", {"metadata": {"name": self._name}})
        for name, value in PRIORITIES.items():
            body = {"metadata": {"name": name}, "value": value}
            self._api.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        small, large = (
            create_nodes(self._kubeconfig, count, cpu=str(cpu), prefix=f"{self._name}-{cpu}")
            for count, cpu in zip(nodes_needed(self._count), (SMALL, LARGE), strict=True)
        )
        self._nodes = [*small, *large]
        self._trials = list(trials(self._count, small, large, rivals=not self._blind))
        wait_for(self._is_welcome, "the namespace takes pods of each priority")
        self._watcher.start()
        self._create(filler for trial in self._trials for filler in trial.fillers)
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        """Removes all of it."""
        self._stop.set()
        names = [item["metadata"]["name"] for item in self._api.get(self._pods)["items"]]
        # A collection at once takes too long.
        at_once(lambda name: self._api.delete(f"{self._pods}/{name}", 0), names)
        if self._watcher.is_alive():
            self._watcher.join()  # It has seen them go.
        self._api.delete(f"/api/v1/namespaces/{self._name}")
        self._api.delete(f"{_STORES}/{self._name}")
        for node in self._nodes:
            self._api.delete(f"/api/v1/nodes/{node}")
        self._api.close()

    def rage(self) -> None:
        """Lets all preemptors come at once; returns when all have landed or are refused.

        A blind one has no such end: whom kube-scheduler sent into a trap may wait there for its
        five minutes. It returns when all traps have sprung.
        """
        began = time.monotonic()
        self._create(self._preemptors())
        if self._blind:
            wait_for(self._are_trapped, "pods are evicted for nothing", _PATIENCE_S)
        else:
            wait_for(self._are_judged, "all are landed or refused", _PATIENCE_S)
        self._seconds = time.monotonic() - began

    def try_again(self, preemptions: Callable[[], float]) -> None:
        """Has kube-scheduler try those again that did not land.

        Args:
            preemptions: how many Preempt calls were answered so far.
        """
        expected = preemptions() + sum(not any(p.lands for p in t.preemptors) for t in self._trials)
        # Any pod that goes makes kube-scheduler try those again that it refused by itself.
        tick = StormPod(f"tick-{time.time_ns()}", 0, LOW, (self._nodes[0],), is_filler=True)
        self._create([tick])
        wait_for(lambda: tick.name in self._node_of, "a pod has come")
        self._api.delete(f"{self._pods}/{tick.name}", grace_seconds=0)
        wait_for(lambda: preemptions() >= expected, "all are tried again")

    def outcome(self) -> Outcome:
        """Returns what became of all."""
        fates: dict[str, list[str]] = {"useful": [], "useless": [], "elsewhere": []}
        for trial in self._trials:
            for filler in trial.fillers:
                if filler.name in self._evicted:
                    fates[self._fate(trial, filler.nodes[0])].append(filler.name)
        return Outcome(
            trials=len(self._trials),
            landed=sum(pod.name in self._node_of for pod in self._preemptors()),
            useful=len(fates["useful"]),
            useless=tuple(fates["useless"]),
            elsewhere=tuple(fates["elsewhere"]),
            owners=sum(_owner(node) in self._node_of for t in self._trials for node in t.holds),
            seconds=self._seconds,
        )

    def _fate(self, trial: Trial, node: str) -> str:
        if any(pod.lands and self._node_of.get(pod.name) == node for pod in trial.preemptors):
            return "useful"
        return "useless" if node in trial.holds else "elsewhere"

    def seat_owners(self) -> None:
        """Has the owners come; returns when all have landed. Nobody's priority is above theirs."""
        owners = [
            StormPod(_owner(node), cpu, HIGH, (node,))
            for trial in self._trials
            for node, cpu in trial.holds.items()
        ]
        self._create(owners)
        wait_for(
            lambda: all(owner.name in self._node_of for owner in owners),
            "owners are seated",
            _PATIENCE_S,
        )

    def _preemptors(self) -> Iterator[StormPod]:
        return (pod for trial in self._trials for pod in trial.preemptors)

    def _are_judged(self) -> bool:
        return all(
            pod.name in (self._node_of if pod.lands else self._refused)
            for pod in self._preemptors()
        )

    def _are_trapped(self) -> bool:
        return all(
            any(f.name in self._evicted for f in trial.fillers if trial.trap in f.nodes)
            for trial in self._trials
            if trial.trap
        )

    def _hold(self) -> None:
        """Writes the reservations, and returns when all are acknowledged."""
        holds = {node: cpu for trial in self._trials for node, cpu in trial.holds.items()}
        data = {
            f"hold-{node}": json.dumps(
                {
                    "owners": [{"pod": {"name": _owner(node), "namespace": self._name}}],
                    "resources": {"cpu": cpu},
                    "node": node,
                    "ttl": "1h",
                }
            )
            for node, cpu in holds.items()
        }
        metadata = {"name": self._name, "labels": {"reserver.io/store": "true"}}
        self._api.create(_STORES, {"metadata": metadata, "data": data})
        wait_for(lambda: self._are_backed(len(holds)), "the holds are in force")

    def _are_backed(self, count: int) -> bool:
        with suppress(ApiFault):
            said = self._api.get(f"{_STORES}/{self._name}-status").get("data") or {}
            return len([s for s in said.values() if json.loads(s)["backed"]]) == count
        return False

    def _is_welcome(self) -> bool:
        """Whether the API server knows the namespace's account and the PriorityClasses."""
        with suppress(ApiFault):
            for priority in PRIORITIES:
                probe = self._body(StormPod("probe", 1, priority, ("nowhere",)))
                self._api.create(f"{self._pods}?dryRun=All", probe)
            return True
        return False

    def _create(self, pods: Iterable[StormPod]) -> None:
        self._api.create_all(self._pods, map(self._body, pods))

    def _body(self, pod: StormPod) -> dict[str, Any]:
        requests = {"cpu": pod.cpu}
        spec = {
            "schedulerName": self._scheduler,
            "priorityClassName": pod.priority,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
        }
        if pod.is_filler:
            return {"metadata": {"name": pod.name}, "spec": {**spec, "nodeName": pod.nodes[0]}}
        hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [*pod.nodes]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return {"metadata": {"name": pod.name}, "spec": {**spec, "affinity": affinity}}

    def _watch(self) -> None:
        version = self._api.get(self._pods)["metadata"]["resourceVersion"]
        while not self._stop.is_set():
            for event in self._api.watch(self._pods, version):
                version = event["object"]["metadata"]["resourceVersion"]
                self._take(event["object"])
                if self._stop.is_set():
                    return

    def _take(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if node := pod["spec"].get("nodeName"):
            self._node_of[name] = node
        for condition in pod["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                self._refused.add(name)
            if condition.get("reason") == "PreemptionByScheduler":
                self._evicted.add(name)


def _owner(node: str) -> str:
    return f"{node}-owner"
