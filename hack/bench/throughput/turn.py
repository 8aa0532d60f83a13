"""One turn: pods are created, and measured until all of them are bound."""

from __future__ import annotations

import signal
import ssl
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hack.bed.api import Api, at_once
from hack.bed.install import install
from hack.bench.documents import NAMESPACE, new_pod
from hack.bench.report import machine, progress
from hack.bench.throughput.variants import VARIANTS, Variant
from hack.controlplane.build import BuildError, chosen
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.controlplane.process import StartError
from hack.go_tool import PLAIN_EXTENDER
from hack.programs import cpu_s, heed_signals
from hack.reserver_process import metrics

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_PATIENCE_S = 300.0
_WARM = 200
"""Pods that are bound before the timed ones: caches fill, connections open."""

_LOOK_S = 0.1
"""Seconds between two reads of kube-scheduler's metrics, which cost it some CPU."""

_RESTING = 0.1
"""Share of a core below which the API server is idle, with 5,000 nodes."""

_SETTLED_S = 30
"""Longest wait for an idle API server, in seconds."""

_BOUND = 'scheduler_schedule_attempts_total{profile="%s",result="scheduled"}'
_ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds_"
_KEPT = ("labels", "annotations")
EXTENDER = "extender"
Taken = TypeVar("Taken")
SERVERS = ("kube-scheduler", "kube-apiserver", "etcd")


@dataclass(frozen=True)
class Reading:
    """The counters at a moment.

    Attributes:
        at: the moment, in monotonic seconds.
        bound: pods bound so far.
        cpu: seconds of CPU so far, by process.
        algorithm_s: seconds of kube-scheduler's algorithm so far.
        algorithms: runs of the algorithm so far.
    """

    at: float
    bound: float
    cpu: Mapping[str, float]
    algorithm_s: float
    algorithms: float


@dataclass(frozen=True)
class Turn:
    """The readings of a turn: pods are created as fast as the API server accepts them, and bound.

    Attributes:
        first: the reading before the first pod is created.
        last: the reading once the last pod is bound.
        done: the reading once all pods run. The writes of their kubelets, and the watch events of
            these, belong to each pod; but the part before `last` depends on the slower side.
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
        """Return the milliseconds of CPU of a process for each pod; 0 without the process."""
        return (self.done.cpu.get(process, 0) - self.first.cpu.get(process, 0)) * 1e3 / self._pods

    def __str__(self) -> str:
        """Return the rate."""
        return f"{self.rate:.0f} pods/s"

    @property
    def _pods(self) -> float:
        return self.last.bound - self.first.bound


@dataclass
class Cluster:
    """A cluster in which variants take turns.

    Attributes:
        plane: the control plane.
        api: a client of its API server.
        kubeconfig: kubeconfig of Reserver's own account, for the extenders.
        folder: folder for logs.
        pods: pods bound in a turn, without the warm-up pods.
    """

    plane: ControlPlane
    api: Api
    kubeconfig: Path
    folder: Path
    pods: int
    _turns: int = field(default=0, init=False)

    def turn(self, variant: Variant) -> Turn:
        """Bind the pods of one turn with a variant, then delete them."""
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
        """Wait until the API server is idle, as the previous turn may have left work."""
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
        self.api.create_all(_PODS, (_pod(pod, name) for pod in names))

    def _delete(self, names: Sequence[str]) -> None:
        at_once(lambda pod: self.api.delete(f"{_PODS}/{pod}", grace_seconds=0), names)


@dataclass(frozen=True)
class Rounds:
    """Turns of variants.

    Attributes:
        nodes: nodes of the cluster.
        pods: pods bound in a turn.
        count: turns of each variant.
    """

    nodes: int
    pods: int
    count: int

    def run(
        self, names: Sequence[str], take: Callable[[Cluster, Variant], Taken]
    ) -> dict[str, list[Taken]]:
        """Return the results of each variant's turns, on a new control plane."""
        taken: dict[str, list[Taken]] = {name: [] for name in names}
        with (
            tempfile.TemporaryDirectory(prefix="reserver-throughput-") as folder,
            ControlPlane(controller_manager=False) as plane,
            closing(Api(plane.kubeconfig)) as api,
        ):
            account = install(plane.kubeconfig, plane.folder, NAMESPACE)
            create_nodes(plane.kubeconfig, self.nodes, cpu="32", memory="128Gi")
            cluster = Cluster(plane, api, account, Path(folder), self.pods)
            cluster.turn(VARIANTS[names[0]])  # The first turn fills caches, and is not counted.
            for number in range(self.count):
                for name in [*names[number % len(names) :], *names[: number % len(names)]]:
                    taken[name].append(take(cluster, VARIANTS[name]))
                    progress(f"{self.nodes:,} nodes, {name}: {taken[name][-1]}")
        return taken

    def __str__(self) -> str:
        """Return machine, number of turns and pods."""
        return f"{machine(chosen())}; medians of {self.count} turns of {self.pods:,} pods"


@contextmanager
def measuring() -> Iterator[None]:
    """Build the tools of turns; end the program if a start fails or a turn does not end."""
    heed_signals()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        PLAIN_EXTENDER.build()
        yield
    except (StartError, BuildError, TimeoutError, PermissionError) as error:
        sys.exit(str(error))


@dataclass(frozen=True)
class Metrics:
    """The metrics of one kube-scheduler.

    Attributes:
        plane: its control plane.
        port: port of its metrics.
        profile: its `schedulerName`.
    """

    plane: ControlPlane
    port: int
    profile: str

    def read(self, pids: Mapping[str, int]) -> Reading:
        """Return the counters of this moment, with the CPU times of processes."""
        context = ssl.create_default_context(cafile=self.plane.ca_file)
        headers = {"Authorization": f"Bearer {self.plane.token}"}
        url = f"https://127.0.0.1:{self.port}/metrics"
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, context=context) as response:  # noqa: S310
            at, cpu = time.monotonic(), {name: cpu_s(pid) for name, pid in pids.items()}
            found = metrics(response.read().decode())
        names = (_BOUND % self.profile, f"{_ALGORITHM}sum", f"{_ALGORITHM}count")
        bound, algorithm_s, algorithms = (found.get(name, 0) for name in names)
        return Reading(at, bound, cpu, algorithm_s, algorithms)


def _reached(metrics: Metrics, pids: Mapping[str, int], bound: int) -> Reading:
    """Return the first reading with `bound` pods bound.

    Raises:
        TimeoutError: five minutes have passed.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while (reading := metrics.read(pids)).bound < bound:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{reading.bound:.0f} of {bound} pods are bound")
        time.sleep(_LOOK_S)
    return reading


def _pod(name: str, scheduler: str) -> dict[str, Any]:
    """Return a pod of a few hundredths of a CPU: thousands fit on the nodes."""
    document = new_pod(name, {"cpu": "50m", "memory": "64Mi"})
    for container in document["spec"]["containers"]:
        container["image"] = "registry.example/shop/web:2.41.0"
    metadata = {"name": name, **{key: document["metadata"][key] for key in _KEPT}}
    return {"metadata": metadata, "spec": {**document["spec"], "schedulerName": scheduler}}
