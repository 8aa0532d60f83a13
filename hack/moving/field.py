"""Where pods move: a control plane, Reserver that carries out PodMoves, and a kube-scheduler."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.chaos.mishaps import Mishaps
from hack.chaos.proxy import Proxy
from hack.chaos.replicas import Replicas
from hack.chaos.victims import Victims
from hack.chaos.world import ROOT, SCHEDULER_CONFIG, install
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.nodes import create_nodes
from hack.controlplane.scheduler_config import render_scheduler_config

CORES = 4
"""Of a node."""

SCHEDULER = "moving"
_MOVES = ROOT / "scheduler-config/components/moves"
_FLAGS = ("--pod-moves", "--default-quota", "none", "--log-level", "info")
_LOGS = (SCHEDULER, "kube-apiserver", "kube-controller-manager")


@dataclass(frozen=True, kw_only=True)
class Field:
    """Where pods move.

    Attributes:
        nodes: their names; each has `CORES`.
        victims: all that runs there.
        folder: for logs and histories; it stays only if it was asked for.
    """

    nodes: list[str]
    victims: Victims
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.victims.plane.kubeconfig


@contextmanager
def opened(nodes: int, mishaps: Mishaps, keep: Path | None) -> Iterator[Field]:
    """Run all of it; what Reserver asks of the API server goes through a proxy with mishaps."""
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        plane = stack.enter_context(ControlPlane())
        account = install(plane.kubeconfig, plane.folder)
        files = ("crd.yaml", "crd-group.yaml", "rbac.yaml")
        kubectl(plane.kubeconfig, "apply", *(f"-f={_MOVES / file}" for file in files))
        crds = ("crd/podmoves.reserver.io", "crd/podmovegroups.reserver.io")
        kubectl(plane.kubeconfig, "wait", "--for=condition=Established", *crds)
        names = create_nodes(plane.kubeconfig, nodes, cpu=str(CORES))
        proxy = stack.enter_context(Proxy(account, mishaps))
        proxied = plane.folder / "proxied-kubeconfig"
        proxy.write_kubeconfig(proxied)
        reserver = stack.enter_context(Replicas(proxied, folder, flags=_FLAGS))
        config = plane.folder / "scheduler.yaml"
        config.write_text(
            render_scheduler_config(
                SCHEDULER_CONFIG,
                kubeconfig=plane.kubeconfig,
                port=reserver.port,
                scheduler_name=SCHEDULER,
            )
        )
        plane.start_scheduler(config, SCHEDULER)
        if keep:
            stack.callback(_keep_logs, plane, folder)
        victims = Victims(
            plane=plane,
            reserver=reserver,
            proxy=proxy,
            mishaps=mishaps,
            clock=None,
            scheduler=SCHEDULER,
            scheduler_config=config,
        )
        yield Field(nodes=names, victims=victims, folder=folder)


def _keep_logs(plane: ControlPlane, folder: Path) -> None:
    for name in _LOGS:
        shutil.copy(plane.logs_dir / f"{name}.log", folder)
