"""A test bed: a control plane, nodes, Reserver with the rights that we ship, a kube-scheduler."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.bed.install import SHIPPED, install
from hack.bed.mishaps import Mishaps
from hack.bed.proxy import Proxy
from hack.bed.replicas import Replicas
from hack.bed.wall_clock import WallClock
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.controlplane.scheduler_config import render_scheduler_config

SCHEDULER_CONFIG = SHIPPED / "base/kube-scheduler.yaml"


@dataclass(frozen=True, kw_only=True)
class Bed:
    """The programs of a storm, which its faults strike.

    Attributes:
        plane: the control plane.
        nodes: names of its nodes.
        reserver: one replica or more.
        proxy: the proxy between Reserver and the API server; None if no fault needs one.
        mishaps: faults of the requests through the proxy.
        clock: Reserver's clock; None if no fault needs one.
        scheduler: name of the kube-scheduler in `plane`.
        scheduler_config: the file to start it with.
        folder: for logs and histories.
    """

    plane: ControlPlane
    nodes: Sequence[str]
    reserver: Replicas
    proxy: Proxy | None
    mishaps: Mishaps
    clock: WallClock | None
    scheduler: str
    scheduler_config: Path
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.plane.kubeconfig

    def restart_scheduler(self) -> None:
        """End kube-scheduler and start it again."""
        self.plane.stop_scheduler(self.scheduler)
        self.plane.start_scheduler(self.scheduler_config, self.scheduler)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The settings of Reserver and kube-scheduler in a storm.

    Attributes:
        scheduler: name of the kube-scheduler.
        mishaps: faults of the requests through the proxy.
        is_proxied: Reserver reaches the API server through a proxy.
        clock: Reserver's clock; None for the machine's.
        count: replicas of Reserver.
        flags: further flags of Reserver.
        is_parted: the network between kube-scheduler and Reserver may be cut.
    """

    scheduler: str
    mishaps: Mishaps
    is_proxied: bool = True
    clock: WallClock | None = None
    count: int = 1
    flags: Sequence[str] = ()
    is_parted: bool = False


@contextmanager
def opened(
    nodes: int, cpu: str, folder: Path, setup: Setup, components: Sequence[Path] = ()
) -> Iterator[Bed]:
    """Run a bed on a control plane of its own, with nodes of so many CPUs."""
    with ControlPlane() as plane:
        account = install(plane.kubeconfig, plane.folder, components=components)
        names = create_nodes(plane.kubeconfig, nodes, cpu=cpu)
        with serving(plane, account, folder, setup, names) as bed:
            yield bed


@contextmanager
def serving(
    plane: ControlPlane, account: Path, folder: Path, setup: Setup, nodes: Sequence[str] = ()
) -> Iterator[Bed]:
    """Run Reserver, as an account, and a kube-scheduler; keep all logs in the folder."""
    with ExitStack() as stack:
        proxy = None
        if setup.is_proxied:
            proxy = stack.enter_context(Proxy(account, setup.mishaps))
            account = plane.folder / "proxied-kubeconfig"
            proxy.write_kubeconfig(account)
        replicas = Replicas(
            account,
            folder,
            setup.count,
            flags=setup.flags,
            is_parted=setup.is_parted,
            prepare=setup.clock.code if setup.clock else "",
        )
        reserver = stack.enter_context(replicas)
        stack.callback(_keep_logs, plane, folder)
        config = stack.enter_context(scheduling(plane, reserver.port, setup.scheduler))
        yield Bed(
            plane=plane,
            nodes=nodes,
            reserver=reserver,
            proxy=proxy,
            mishaps=setup.mishaps,
            clock=setup.clock,
            scheduler=setup.scheduler,
            scheduler_config=config,
            folder=folder,
        )


@contextmanager
def scheduling(
    plane: ControlPlane, port: int, name: str, changed: Callable[[str], str] = str
) -> Iterator[Path]:
    """Run a kube-scheduler whose extender listens on a port, by the configuration that we ship.

    Args:
        plane: where it runs.
        port: of the extender, on loopback.
        name: of the scheduler, as pods have it.
        changed: what its configuration is changed by.

    Yields:
        The file with its configuration.
    """
    config = plane.folder / f"{name}.yaml"
    rendered = render_scheduler_config(
        SCHEDULER_CONFIG, kubeconfig=plane.kubeconfig, port=port, scheduler_name=name
    )
    config.write_text(changed(rendered))
    plane.start_scheduler(config, name)
    try:
        yield config
    finally:
        plane.stop_scheduler(name)


def _keep_logs(plane: ControlPlane, folder: Path) -> None:
    for log in plane.logs_dir.glob("*.log"):
        shutil.copy(log, folder)
