"""One turn: pods are created, and what it takes until all of them are bound."""

from __future__ import annotations

import os
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.bed.api import Api
from hack.bench.documents import NAMESPACE, new_pod
from hack.bench.throughput.variants import Variant
from hack.controlplane.cluster import ControlPlane

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CONNECTIONS = 8
_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE_S = 300.0
_WARM = 200
"""So many pods are bound before the turn is timed: caches fill, connections open."""

_LOOK_S = 0.1
"""How often kube-scheduler is asked how far it is, in seconds: its metrics cost it some CPU."""

_RESTING = 0.1
"""Of a core: the API server rests, with 5,000 nodes."""

_SETTLED_S = 30
"""For how many seconds that is awaited."""

_BOUND = 'scheduler_schedule_attempts_total{profile="%s",result="scheduled"}'
_ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds_"
_KEPT = ("labels", "annotations")
EXTENDER = "extender"
SERVERS = ("kube-scheduler", "kube-apiserver", "etcd")


@dataclass(frozen=True)
class Reading:
    """What has been spent by some moment.

    Attributes:
        at: the moment, in monotonic seconds.
        bound: pods bound so far.
        cpu: seconds of CPU so far, by process.
        algorithm_s: seconds of kube-scheduler's algorithm so far.
        algorithms: how often it ran.
    """

    at: float
    bound: float
    cpu: Mapping[str, float]
    algorithm_s: float
    algorithms: float


@dataclass(frozen=True)
class Turn:
    """What a turn took: pods are created as fast as the API server takes them, and bound.

    Attributes:
        first: the reading before the first is created.
        last: the reading once the last is bound.
        done: the reading once all of them run. What their kubelets write, and what watches show of
            it, belongs to each pod; but how much of it falls before `last` depends on who is slow.
    """

    first: Reading
    last: Reading
    done: Reading

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self._pods / (self.last.at - self.first.at)

    @property
    def algorithm_ms(self) -> float:
        """The mean duration of kube-scheduler's algorithm, in milliseconds."""
        took = self.last.algorithm_s - self.first.algorithm_s
        return took * 1e3 / (self.last.algorithms - self.first.algorithms)

    def cpu_ms(self, process: str) -> float:
        """Return the milliseconds of CPU that a pod took of a process; 0 if there is none."""
        return (self.done.cpu.get(process, 0) - self.first.cpu.get(process, 0)) * 1e3 / self._pods

    @property
    def _pods(self) -> float:
        return self.last.bound - self.first.bound


@dataclass
class Cluster:
    """A cluster in which variants take turns.

    Attributes:
        plane: the control plane.
        api: a client of its API server.
        kubeconfig: of Reserver's own account, which extenders use.
        folder: for logs.
        pods: how many are bound in a turn, besides those that warm up.
    """

    plane: ControlPlane
    api: Api
    kubeconfig: Path
    folder: Path
    pods: int
    _turns: int = field(default=0, init=False)

    def turn(self, variant: Variant) -> Turn:
        """Let a variant bind the pods of one turn, then delete them."""
        self._turns += 1
        name = f"turn-{self._turns}"
        self._settle()
        warm = [f"{name}-warm-{number:03}" for number in range(_WARM)]
        pods = [f"{name}-{number:05}" for number in range(self.pods)]
        self._create(name, warm)
        run = variant.run(self.kubeconfig, self.folder) if variant.run else nullcontext(None)
        with run as extender:
            config = self.plane.folder / f"{name}.yaml"
            config.write_text(variant.config(self.plane.kubeconfig, extender, name))
            metrics = Metrics(self.plane, self.plane.start_scheduler(config), name)
            pids = {process: self.plane.pids[process] for process in SERVERS}
            if extender is not None:
                pids[EXTENDER] = extender.pid
            try:
                first = _reached(metrics, pids, len(warm))
                self._create(name, pods)
                last = _reached(metrics, pids, len(warm) + len(pods))
                self._await_running()
                done = metrics.read(pids)
            finally:
                self.plane.stop_scheduler()
        self._delete(warm + pods)
        return Turn(first, last, done)

    def _settle(self) -> None:
        """Wait until the API server rests: what the turn before left is not this one's."""
        pid = self.plane.pids["kube-apiserver"]
        for _ in range(_SETTLED_S):
            before = cpu_s(pid)
            time.sleep(1)
            if cpu_s(pid) - before < _RESTING:
                return

    def _await_running(self) -> None:
        """Wait until kwok has all pods running."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.api.get(f"{_PODS}?fieldSelector=status.phase%3DPending&limit=1")["items"]:
            if time.monotonic() > deadline:
                raise TimeoutError("pods that are bound do not run")
            time.sleep(_LOOK_S)

    def _create(self, name: str, names: Sequence[str]) -> None:
        self._each(lambda pod: self.api.create(_PODS, _pod(pod, name)), names)

    def _delete(self, names: Sequence[str]) -> None:
        self._each(lambda pod: self.api.delete(f"{_PODS}/{pod}", grace_seconds=0), names)

    @staticmethod
    def _each(call: Callable[[str], None], names: Sequence[str]) -> None:
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            for _ in pool.map(call, names):
                pass


@dataclass(frozen=True)
class Metrics:
    """The metrics of one kube-scheduler.

    Attributes:
        plane: what it belongs to.
        port: where it serves them.
        profile: its `schedulerName`.
    """

    plane: ControlPlane
    port: int
    profile: str

    def read(self, pids: Mapping[str, int]) -> Reading:
        """Return what has been spent by now, by processes as well."""
        context = ssl.create_default_context(cafile=self.plane.ca_file)
        headers = {"Authorization": f"Bearer {self.plane.token}"}
        url = f"https://127.0.0.1:{self.port}/metrics"
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, context=context) as response:  # noqa: S310
            at, cpu = time.monotonic(), {name: cpu_s(pid) for name, pid in pids.items()}
            text = response.read().decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
        return Reading(
            at,
            float(values.get(_BOUND % self.profile, 0)),
            cpu,
            float(values.get(f"{_ALGORITHM}sum", 0)),
            float(values.get(f"{_ALGORITHM}count", 0)),
        )


def _reached(metrics: Metrics, pids: Mapping[str, int], bound: int) -> Reading:
    """Return the first reading with so many pods bound.

    Raises:
        TimeoutError: they are not bound within five minutes.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while (reading := metrics.read(pids)).bound < bound:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{reading.bound:.0f} of {bound} pods are bound")
        time.sleep(_LOOK_S)
    return reading


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has taken, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _pod(name: str, scheduler: str) -> dict[str, Any]:
    """Return a pod of a few hundredths of a CPU: thousands fit beside each other."""
    document = new_pod(name, {"cpu": "50m", "memory": "64Mi"})
    for container in document["spec"]["containers"]:
        container["image"] = "registry.example/shop/web:2.41.0"
    metadata = {"name": name, **{key: document["metadata"][key] for key in _KEPT}}
    return {"metadata": metadata, "spec": {**document["spec"], "schedulerName": scheduler}}
