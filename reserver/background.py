"""What runs beside the calls, and when each part starts."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from itertools import chain

import structlog

from reserver.assembly import Assembly
from reserver.errors import LeadershipLost
from reserver.kube.loops.lease import Lease
from reserver.kube.stores.stores import Stores
from reserver.kube.watch.history import History
from reserver.pacer import Pacer

log = structlog.get_logger(__name__)

_HISTORY_PATIENCE_S = 5.0
"""How long calls wait for the history to be read, in seconds: without it more is held."""


async def lead(assembly: Assembly) -> None:
    """Watch the cluster and decide; with a lease, only once it is held.

    Watching begins only then, so that what is listed includes every binding of the previous leader.
    """
    if assembly.readiness.lease is not None:
        await assembly.readiness.lease.acquire()
    async with asyncio.TaskGroup() as tasks:
        if assembly.readiness.lease is not None:
            tasks.create_task(_keep(assembly.readiness.lease))
        tasks.create_task(assembly.recorder.run())
        tasks.create_task(assembly.waker.run(assembly.state))
        tasks.create_task(assembly.requeue.run())
        tasks.create_task(_complete(assembly))
        for reflector in assembly.reflectors:
            tasks.create_task(reflector.run())


async def _keep(lease: Lease) -> None:
    try:
        await lease.keep()
    except LeadershipLost as exc:
        log.error("leadership lost, ending at once", why=str(exc))
        os._exit(1)  # No write that is under way may be made any more.


async def _complete(assembly: Assembly) -> None:
    """Clean and acknowledge once all is listed; decide once the history is read, too."""
    for reflector in assembly.reflectors:
        await reflector.synced.wait()
    stores = assembly.stores
    quotas, quota_writer = assembly.quotas, assembly.quota_writer
    with suppress(TimeoutError):
        async with asyncio.timeout(_HISTORY_PATIENCE_S):
            for store in stores:
                await store.statuses.recall(assembly.state.ledger)
    await Pacer().run(assembly.state.ledger.open())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(quota_writer.admit(assembly.state.ledger))
        tasks.create_task(quota_writer.run(quotas))
        tasks.create_task(assembly.cleaner.run(stores))
        for store in stores:
            tasks.create_task(store.statuses.run(assembly.state))
        reading = tasks.create_task(_read(assembly.history, stores))
        await asyncio.wait((reading,), timeout=_HISTORY_PATIENCE_S)
        for set_id in chain.from_iterable(store.cache.abandon_unfinished() for store in stores):
            log.warning("a set was not finished by who wrote it, and is taken back", set=set_id)
        assembly.state.is_complete = True
        log.info(
            "ready",
            nodes=assembly.state.snapshot.node_count,
            pods=len(assembly.state.pods),
            reservations=len(assembly.state.ledger),
        )
        tasks.create_task(assembly.placer.run(assembly.state))


async def _read(history: History, stores: Stores) -> None:
    for store in stores:  # It may take the history to tell what was said before the start.
        await store.statuses.recalled()
    await history.read()
