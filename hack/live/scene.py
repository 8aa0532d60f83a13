"""What a measurement needs: nodes that nobody uses, Reserver, and the stock kube-scheduler."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.chaos.api import Api
from hack.chaos.forms import SPEC_STORE
from hack.chaos.store import path_of
from hack.chaos.world import SCHEDULER_CONFIG, install
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.controlplane.scheduler_config import render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for

SCHEDULER = "reserver-scheduler"
CPUS = 4
"""How many a node has."""

_PODS = "/api/v1/namespaces/default/pods"
_BOUND = 'reserver_extender_calls_total{outcome="bound",verb="bind"}'
_ACTIVE = 'reserver_reservations{phase="Active"}'


@dataclass(frozen=True)
class Scene:
    """A control plane.

    Attributes:
        plane: the control plane.
        api: its API.
        account: kubeconfig of Reserver, with the rights that we ship.
        folder: for logs and configuration.
        nodes: their names.
    """

    plane: ControlPlane
    api: Api
    account: Path
    folder: Path
    nodes: tuple[str, ...]

    @contextmanager
    def reserver(self, changed: str = "") -> Iterator[ReserverProcess]:
        """Run Reserver with kube-scheduler before it.

        Args:
            changed: Python code to run before Reserver, which changes something in it.
        """
        reserver = ReserverProcess(self.account, self.folder / "reserver.log")
        if changed:
            reserver.prepare(changed)
        with reserver, self.scheduler(reserver):
            yield reserver

    @contextmanager
    def scheduler(
        self,
        reserver: ReserverProcess,
        name: str = SCHEDULER,
        changed: Callable[[str], str] = str,
    ) -> Iterator[None]:
        """Run a kube-scheduler of a name before Reserver, with its configuration changed."""
        config = self.folder / f"{name}.yaml"
        rendered = render_scheduler_config(
            SCHEDULER_CONFIG,
            kubeconfig=self.plane.kubeconfig,
            port=reserver.port,
            scheduler_name=name,
        )
        config.write_text(changed(rendered))
        self.plane.start_scheduler(config)
        yield
        self.plane.stop_scheduler()

    def hold(self, reserver: ReserverProcess, owners: Mapping[str, str]) -> None:
        """Hold nodes whole, each for a pod by its name; return once that is in force."""
        self._write({node: specification(node, owner) for node, owner in owners.items()})
        wait_for(lambda: reserver.metric(_ACTIVE) == len(owners), "all is held")

    def release(self, nodes: Iterable[str]) -> None:
        """End the holds on some nodes in one edit."""
        self._write(dict.fromkeys(nodes))

    def _write(self, data: Mapping[str, str | None]) -> None:
        self.api.patch(path_of(SPEC_STORE), {"data": data})

    def create(self, name: str) -> None:
        """Create a pod of one CPU."""
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": SCHEDULER, "containers": [container]}
        self.api.create(_PODS, {"metadata": {"name": name}, "spec": spec})

    def node_of(self, name: str) -> str:
        """Return where a pod is bound; empty while it is not."""
        node: str = self.api.get(f"{_PODS}/{name}")["spec"].get("nodeName", "")
        return node

    def let_wait(self, reserver: ReserverProcess, count: int) -> None:
        """Create pods; return once kube-scheduler has refused all."""
        for number in range(count):
            self.create(f"p-{number}")
        wait_for(lambda: waiting(reserver) == count, "all wait", 180)

    def clear(self, reserver: ReserverProcess) -> None:
        """Delete all pods; return once kube-scheduler and Reserver know."""
        self.api.delete(_PODS, grace_seconds=0)
        wait_for(lambda: not self.api.get(f"{_PODS}?limit=1")["items"], "all pods are gone", 120)
        wait_for(lambda: waiting(reserver) == 0, "nobody waits")


@contextmanager
def scene(nodes: int = 0, *, controllers: bool = False) -> Iterator[Scene]:
    """Start a control plane with empty nodes; controllers write, too, which wakes pods."""
    with (
        tempfile.TemporaryDirectory() as name,
        ControlPlane(controller_manager=controllers) as plane,
        closing(Api(plane.kubeconfig)) as api,
    ):
        account = install(plane.kubeconfig, Path(name))
        names = create_nodes(plane.kubeconfig, nodes, cpu=str(CPUS))
        yield Scene(plane, api, account, Path(name), tuple(names))


def waiting(reserver: ReserverProcess) -> float:
    """Return how many pods wait for room."""
    return reserver.metric("reserver_waiting_pods")


def bound(reserver: ReserverProcess) -> int:
    """Return how many pods Reserver has bound since it started."""
    return round(reserver.metric(_BOUND))


def specification(node: str, owner: str) -> str:
    """Return a reservation of a whole node for a pod."""
    owners = f"owners: [{{pod: {{name: {owner}, namespace: default}}}}]"
    return f"{owners}\nnode: {node}\nresources: {{cpu: {CPUS}}}\nttl: 24h\n"
