"""Background tasks: their order of start, and writes in flight."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import structlog

from reserver.base.pacer import Pacer
from reserver.errors import LeadershipLost, WentBack
from reserver.k8s.client import ApiClient
from reserver.k8s.lease import Lease
from reserver.k8s.watch.back_in_time import watched
from reserver.process.assembly import Assembly
from reserver.process.leadership import LeaderLabel

log = structlog.get_logger(__name__)

_HISTORY_PATIENCE_S = 5.0
"""Seconds for which calls wait for the history to be read: without it more room is held."""


async def lead(
    assembly: Assembly,
    client: ApiClient,
    *follow: Callable[[], Coroutine[None, None, None]],
    standing_by: Callable[[Lease], Coroutine[None, None, None]],
) -> None:
    """Watch the cluster and decide; with a lease, only once it is held.

    Watches begin only then, so that the lists include every binding of the previous leader.

    Args:
        assembly: the parts to run.
        client: reads objects for the comparison with etcd.
        follow: run on the leader once it is ready, until cancelled; for example the gRPC feed.
        standing_by: returns once the lease is held.
    """
    if assembly.readiness.lease is not None:
        await standing_by(assembly.readiness.lease)
    async with asyncio.TaskGroup() as tasks:
        if assembly.readiness.lease is not None:
            lost = partial(assembly.readiness.etcd.freeze, client, assembly.reflectors)
            tasks.create_task(_keep(assembly.readiness.lease, lost))
        for reflector in assembly.reflectors:
            tasks.create_task(watched(reflector))
        for reflector in assembly.reflectors:
            await reflector.synced.wait()
        etcd = assembly.readiness.etcd
        await etcd.pass_first(client, assembly.reflectors)
        tasks.create_task(etcd.run(client, assembly.reflectors))
        await _become_ready(assembly, tasks)
        _act(assembly, tasks)
        for each in follow:
            tasks.create_task(each())


async def stand_by(
    assembly: Assembly, client: ApiClient, label: LeaderLabel | None, lease: Lease
) -> None:
    """Acquire the lease; until then show whether this process could lead."""
    standby = assembly.readiness.standby
    if label is not None:  # The container may have led before it was restarted.
        await label.clear()
    async with asyncio.TaskGroup() as tasks:
        trying = tasks.create_task(standby.run(client, assembly.reflectors))
        await lease.acquire()
        trying.cancel()


async def _keep(lease: Lease, lost: Callable[[WentBack], None]) -> None:
    while True:
        try:
            await lease.keep()
        except WentBack as exc:
            lost(exc)  # A new leader would trust the API server's invalid caches.
        except LeadershipLost as exc:
            log.error("leadership lost, ending at once", why=str(exc))
            os._exit(1)  # No write in flight may be sent any more.


async def _become_ready(assembly: Assembly, tasks: asyncio.TaskGroup) -> None:
    """Wait until the history is read; write nothing until then.

    Writers would compete with these reads, and a tenant may cause many writes.
    """
    stores, ledger = assembly.stores, assembly.state.ledger
    with suppress(TimeoutError):
        async with asyncio.timeout(_HISTORY_PATIENCE_S):
            for store in stores:
                await store.statuses.recall(ledger)
    assembly.ceiling.look()
    await Pacer().run(ledger.open())
    tasks.create_task(assembly.quota_writer.admit(ledger))
    reading = tasks.create_task(assembly.history.read())
    reading.add_done_callback(lambda _: _hasten_recovered(assembly))
    await asyncio.wait((reading,), timeout=_HISTORY_PATIENCE_S)
    for set_id in chain.from_iterable(store.cache.abandon_unfinished() for store in stores):
        log.warning("a set was not finished by who wrote it, and is taken back", set=set_id)
    assembly.state.is_complete = True
    log.info(
        "ready",
        nodes=assembly.state.snapshot.node_count,
        pods=len(assembly.state.pods),
        reservations=len(ledger),
    )


def _hasten_recovered(assembly: Assembly) -> None:
    """Write first what only the watch history shows: the next start may be too late to read it."""
    refs = assembly.state.ledger.past.from_history
    while refs:
        ref = refs.pop()
        assembly.cleaner.queue.hasten(ref.whole)
        assembly.stores.at(ref).statuses.queue.hasten(ref.whole)


def _act(assembly: Assembly, tasks: asyncio.TaskGroup) -> None:
    """Start the loops that clean, acknowledge, place, wake, report and rebalance."""
    readiness = assembly.readiness
    tasks.create_task(assembly.recorder.run())
    tasks.create_task(assembly.ceiling.run())
    tasks.create_task(assembly.waker.run(assembly.state))
    tasks.create_task(assembly.requeue.run())
    tasks.create_task(assembly.quota_writer.run(assembly.quotas))
    tasks.create_task(assembly.archivist.run())
    tasks.create_task(assembly.accountant.run(assembly.state.ledger))
    tasks.create_task(assembly.reminder.run(assembly.state.ledger))
    if assembly.state.snapshot.lending.is_on:
        tasks.create_task(assembly.recaller.run(assembly.state, readiness.may_write))
    tasks.create_task(assembly.cleaner.run(assembly.stores, readiness.may_write))
    for store in assembly.stores:
        statuses = store.statuses.run(assembly.state, readiness.is_up_to_date, readiness.may_write)
        tasks.create_task(statuses)
    tasks.create_task(assembly.placer.run(assembly.state))
    for run in assembly.features.runs:
        tasks.create_task(run())


_WRITES_S = 5.0
"""Seconds for writes in flight after the watches have ended. A write that waits for a watch would
wait forever; the next process finishes a set, or removes it."""


class WriteTasks(asyncio.TaskGroup):
    """Writes that go on without a caller; the end of the block waits `_WRITES_S` for them."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: set[asyncio.Task[Any]] = set()

    def create_task(self, *args: Any, **options: Any) -> asyncio.Task[Any]:  # noqa: ANN401
        """Start a write."""
        task = super().create_task(*args, **options)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def __aexit__(self, *raised: Any) -> None:  # noqa: ANN401, PYI036 - as in the base class
        """Wait for the writes, at most `_WRITES_S`."""
        timer = asyncio.get_running_loop().call_later(_WRITES_S, self._give_up)
        try:
            await super().__aexit__(*raised)
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        log.warning("writes are left to the next start", number=len(self._under_way))
        for task in self._under_way:
            task.cancel()
