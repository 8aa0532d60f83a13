"""Where sets are created: on the embedded cluster, or on the real control plane."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from hack.chaos.world import install
from hack.controlplane.cluster import ControlPlane, create_nodes
from hack.reserver_process import ReserverProcess
from hack.sets.auditor import SYSTEM
from reserver import app
from reserver.client import CallFailed, Client, PodOwner, Spec
from reserver.config import ReservationStore, Settings
from reserver.sim.cluster import EmbeddedCluster

NODES = 40
CPU = 4


class Scene(NamedTuple):
    """A cluster with reserver on it.

    Attributes:
        kubeconfig: of an administrator.
        address: of the gRPC API.
        nodes: of `CPU` CPUs each.
    """

    kubeconfig: Path
    address: str
    nodes: list[str]


@asynccontextmanager
async def embedded(store: ReservationStore) -> AsyncIterator[Scene]:
    """Run the embedded cluster, and reserver in this process."""
    with tempfile.TemporaryDirectory() as folder:
        async with EmbeddedCluster(history=100_000) as cluster:
            nodes = [f"worker-{number}" for number in range(NODES)]
            for node in nodes:
                await cluster.create_node(node)
            body = {"metadata": {"name": SYSTEM}}
            await cluster.client.send("POST", "/api/v1/namespaces", body)
            kubeconfig = Path(folder) / "kubeconfig"
            cluster.write_kubeconfig(kubeconfig)
            settings = Settings(
                kubeconfig=kubeconfig,
                http_port=0,
                grpc_address=("127.0.0.1", 0),
                reservation_store=store,
            )
            async with app.running(settings) as reserver:
                scene = Scene(kubeconfig, reserver.grpc_address or "", nodes)
                await _until_seen(scene)
                yield scene


@asynccontextmanager
async def real(store: ReservationStore) -> AsyncIterator[Scene]:
    """Run kube-apiserver and etcd, and reserver as a process with the rights that we ship."""
    with tempfile.TemporaryDirectory() as name, ControlPlane() as plane:
        account = await asyncio.to_thread(install, plane.kubeconfig, Path(name))
        async with on(plane.kubeconfig, account, store, Path(name)) as scene:
            yield scene


@asynccontextmanager
async def on(
    kubeconfig: Path, account: Path, store: ReservationStore, folder: Path
) -> AsyncIterator[Scene]:
    """Run reserver as a process on a cluster, with nodes of its own.

    Args:
        kubeconfig: of an administrator.
        account: kubeconfig of reserver.
        store: where it creates reservations.
        folder: where its log goes.
    """
    prefix = f"race-{store}"
    nodes = await asyncio.to_thread(create_nodes, kubeconfig, NODES, cpu=str(CPU), prefix=prefix)
    flags = ("--grpc-address=127.0.0.1:0", f"--reservation-store={store}", "--log-level=info")
    with ReserverProcess(account, folder / "reserver.log", *flags) as reserver:
        scene = Scene(kubeconfig, reserver.grpc_address, nodes)
        await _until_seen(scene)
        yield scene


async def _until_seen(scene: Scene) -> None:
    """Return once reserver has seen all nodes: a set on all of them can be held."""
    specs = {
        f"probe-{node}": Spec(owners=(PodOwner("shop", "p"),), node=node, resources={"cpu": "1m"})
        for node in scene.nodes
    }
    async with Client(scene.address, deadline_s=60) as client:
        while True:
            try:
                made = await client.create_set(specs)
            except CallFailed as exc:
                if exc.reason != "CAN_NEVER_FIT":
                    raise
            else:
                for each in made:
                    await client.release(each.name)
                return
            await asyncio.sleep(0.1)
