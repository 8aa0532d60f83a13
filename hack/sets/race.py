"""Many clients create sets on a cluster that is full: never too much held, no half set.

The clients release some of their sets to make room, and all sets at the end. An auditor that shares
no code with Reserver's decisions follows the stores and sums up the holds after each write.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from contextlib import closing
from pathlib import Path

from hack.bed.api import Api
from hack.controlplane.nodes import create_nodes
from hack.reserver_process import ReserverProcess
from hack.sets import clients
from hack.sets.auditor import Auditor
from hack.sets.clients import Outcome
from reserver.client import CallFailed, Client, PodOwner, Spec
from reserver.reservations.enums import StoreKind

_NODES, _CPUS = 40, 4
"""The number of nodes, and the CPUs of each."""

_PATIENCE_S = 60
"""Most lag of the auditor at the end, in seconds."""


async def race(
    kubeconfig: Path,
    account: Path,
    store: StoreKind,
    folder: Path,
    *,
    calls: int,
    count: int,
) -> tuple[Outcome, Auditor, float]:
    """Race for the room of nodes of its own; return what came of it, and in how many seconds.

    Args:
        kubeconfig: of an administrator.
        account: kubeconfig of Reserver.
        store: where it creates reservations.
        folder: where its log goes.
        calls: how many.
        count: of the clients that make them.
    """
    prefix = f"race-{store}"
    nodes = await asyncio.to_thread(create_nodes, kubeconfig, _NODES, cpu=str(_CPUS), prefix=prefix)
    flags = ("--grpc-address=127.0.0.1:0", f"--reservation-store={store}", "--log-level=info")
    try:
        with ReserverProcess(account, folder / "reserver.log", *flags) as reserver:
            await _until_seen(reserver.grpc_address, nodes)
            return await _audited(kubeconfig, reserver.grpc_address, nodes, calls, count)
    finally:
        with closing(Api(kubeconfig)) as api:
            for node in nodes:
                await asyncio.to_thread(api.delete, f"/api/v1/nodes/{node}")


async def _audited(
    kubeconfig: Path, address: str, nodes: list[str], calls: int, count: int
) -> tuple[Outcome, Auditor, float]:
    auditor = Auditor(clients.PARTS, _CPUS)
    begun = asyncio.Event()
    following = asyncio.create_task(auditor.follow(kubeconfig, begun))
    try:
        await begun.wait()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            began = time.perf_counter()
            arguments = (address, nodes, calls, count)
            outcome = await asyncio.to_thread(pool.apply, clients.run, arguments)
            took = time.perf_counter() - began
        async with asyncio.timeout(_PATIENCE_S):
            while not (following.done() or await auditor.has_seen_all(kubeconfig)):  # noqa: ASYNC110 - asks the API server
                await asyncio.sleep(1)
        if following.done():
            following.result()  # Raises what ended it.
    finally:
        following.cancel()
    auditor.end()
    return outcome, auditor, took


async def _until_seen(address: str, nodes: list[str]) -> None:
    """Return once Reserver has seen all nodes: a set on all of them can be held."""
    specs = {
        f"probe-{node}": Spec(
            owners=(PodOwner(namespace="shop", name="p"),), node=node, resources={"cpu": "1m"}
        )
        for node in nodes
    }
    async with Client(address, deadline_s=60) as client:
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
