"""What a measurement needs: nodes that are held whole, reserver, and the stock kube-scheduler."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config

from hack.controlplane.cluster import ControlPlane, create_nodes, render_scheduler_config
from hack.reserver_process import ReserverProcess, wait_for

ROOT = Path(__file__).parents[2]
SCHEDULER_CONFIG = ROOT / "scheduler-config/kube-scheduler.yaml"
STORE, NAMESPACE = "reservations", "reserver-system"
NODES, CPUS = 20, 4
"""How many nodes there are, and how many CPUs each has."""

_BOUND = 'reserver_extender_calls_total{outcome="bound",verb="bind"}'


@dataclass(frozen=True)
class Scene:
    """A control plane with nodes that nobody uses.

    Attributes:
        plane: the control plane.
        api: its API; the client's types do not know that bodies may be dicts.
        folder: for logs and configuration.
        nodes: their names.
    """

    plane: ControlPlane
    api: Any
    folder: Path
    nodes: tuple[str, ...]

    @contextmanager
    def reserver(self, changed: str = "") -> Iterator[ReserverProcess]:
        """Run reserver with kube-scheduler before it.

        Args:
            changed: Python code to run before reserver, which changes something in it.
        """
        reserver = ReserverProcess(self.plane.kubeconfig, self.folder / "log")
        if changed:
            reserver.prepare(changed)
        with reserver:
            rendered = self.folder / "scheduler.yaml"
            rendered.write_text(
                render_scheduler_config(
                    SCHEDULER_CONFIG, kubeconfig=self.plane.kubeconfig, port=reserver.port
                )
            )
            self.plane.start_scheduler(rendered)
            yield reserver
            self.plane.stop_scheduler()

    def hold(self, reserver: ReserverProcess) -> None:
        """Hold all nodes whole; return once that is in force."""
        self.write({node: specification(node, "nobody") for node in self.nodes})
        active = 'reserver_reservations{phase="Active"}'
        wait_for(lambda: reserver.metric(active) == len(self.nodes), "all nodes are held")

    def release(self, nodes: Iterable[str]) -> None:
        """End the holds on some nodes in one edit."""
        self.write(dict.fromkeys(nodes))

    def let_wait(self, reserver: ReserverProcess, count: int) -> None:
        """Create pods of one CPU; return once kube-scheduler has refused all."""
        for number in range(count):
            self.api.create_namespaced_pod("default", pod(f"p-{number}"))
        wait_for(lambda: waiting(reserver) == count, "all wait", 180)

    def clear(self, reserver: ReserverProcess) -> None:
        """Delete all pods; return once kube-scheduler and reserver know."""
        self.api.delete_collection_namespaced_pod("default", grace_period_seconds=0)
        pods = self.api.list_namespaced_pod
        wait_for(lambda: not pods("default", limit=1).items, "all pods are gone", 120)
        wait_for(lambda: waiting(reserver) == 0, "nobody waits")

    def write(self, data: Mapping[str, str | None]) -> None:
        """Write reservations by name, in one edit; None removes one."""
        self.api.patch_namespaced_config_map(STORE, NAMESPACE, {"data": data})


@contextmanager
def scene(count: int = NODES) -> Iterator[Scene]:
    """Start a control plane with empty nodes and a store."""
    # Without controllers: their writes would wake pods, too.
    with ControlPlane(controller_manager=False) as plane, tempfile.TemporaryDirectory() as folder:
        api: Any = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
        api.create_namespace({"metadata": {"name": NAMESPACE}})
        labels = {"reserver.io/store": "true"}
        store = {"metadata": {"name": STORE, "labels": labels}}
        api.create_namespaced_config_map(NAMESPACE, store)
        nodes = create_nodes(plane.kubeconfig, count, cpu=str(CPUS))
        yield Scene(plane, api, Path(folder), tuple(nodes))


def waiting(reserver: ReserverProcess) -> float:
    """Return how many pods wait for room."""
    return reserver.metric("reserver_waiting_pods")


def bound(reserver: ReserverProcess) -> int:
    """Return how many pods reserver has bound since it started."""
    return round(reserver.metric(_BOUND))


def specification(node: str, owner: str) -> str:
    """Return a reservation of a whole node for a pod."""
    owners = f"owners: [{{pod: {{name: {owner}, namespace: default}}}}]"
    return f"{owners}\nnode: {node}\nresources: {{cpu: {CPUS}}}\nttl: 24h\n"


def pod(name: str) -> dict[str, Any]:
    """Return a pod of one CPU."""
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "main", "image": "none", "resources": resources}
    spec = {"schedulerName": "reserver-scheduler", "containers": [container]}
    return {"metadata": {"name": name}, "spec": spec}
