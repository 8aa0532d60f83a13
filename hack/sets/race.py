"""Clients that race for the room of a cluster, and an auditor who follows what they write."""

from __future__ import annotations

import asyncio
import multiprocessing
import time

from hack.sets import clients, clusters
from hack.sets.auditor import Auditor
from hack.sets.clients import Outcome
from hack.sets.clusters import Scene

_PATIENCE_S = 60
"""So long the auditor may be behind at the end, in seconds."""


async def race(scene: Scene, calls: int, count: int) -> tuple[Outcome, Auditor, float]:
    """Make so many calls from so many clients; return what came of them, and in how many s."""
    auditor = Auditor(clients.PARTS, clusters.CPU)
    begun = asyncio.Event()
    following = asyncio.create_task(auditor.follow(scene.kubeconfig, begun))
    try:
        await begun.wait()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            began = time.perf_counter()
            arguments = (scene.address, scene.nodes, calls, count)
            outcome = await asyncio.to_thread(pool.apply, clients.run, arguments)
            took = time.perf_counter() - began
        async with asyncio.timeout(_PATIENCE_S):
            while not (following.done() or await auditor.has_seen_all(scene.kubeconfig)):  # noqa: ASYNC110 - asks the API server
                await asyncio.sleep(1)
        if following.done():
            following.result()  # Raises what ended it.
    finally:
        following.cancel()
    auditor.end()
    return outcome, auditor, took
