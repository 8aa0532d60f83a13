"""The composition root of `reserver rebalance run`."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from uuid import uuid4

import structlog

from reserver.base.clock import SteadyClock, elapsed
from reserver.errors import LeadershipLost
from reserver.extender.metrics import refusals
from reserver.extender.server import HEALTH_LIMITS
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.k8s.client import ApiClient
from reserver.k8s.credentials import Credentials
from reserver.k8s.lease import Lease, Timing
from reserver.moves.phases import MoveMode
from reserver.rebalance import emptying, pending, planner, upstream
from reserver.rebalance.capacity import Held
from reserver.rebalance.evictions import Evictions, Pace
from reserver.rebalance.metrics import DeschedulingMetrics, health_paths
from reserver.rebalance.node_marks import NodeMarks
from reserver.rebalance.outcomes import OutcomeReporter, Result
from reserver.rebalance.plan import Plan
from reserver.rebalance.pod_moves import PodMoves
from reserver.rebalance.policy_file import PolicyFile
from reserver.rebalance.round_input import Decision, RoundInput
from reserver.rebalance.rounds import Rebalancer, Round
from reserver.rebalance.settings import Compat, Mode, RebalanceSettings
from reserver.rebalance.time_limit import SECONDS, TimeLimit

log = structlog.get_logger(__name__)

_SHUTDOWN_S = 1.0


async def rebalance(
    settings: RebalanceSettings,
    access: Credentials,
    held: Callable[[], Awaitable[Held]],
    started: Callable[[str], None],
    stop: Callable[[], Awaitable[object]],
    metrics: DeschedulingMetrics,
) -> Round | None:
    """Run one round and return it, or run rounds until `stop` returns.

    Args:
        held: returns the resources that reservations hold, by node.
        started: receives the URLs of the API server and, if served, of health.
        stop: returns once the rounds should end.

    Raises:
        ConfigurationError: the credentials or the policy cannot be used, a port is taken, or the
            API server has no PodMoves, which the round would write.
        ApiError: the cluster cannot be listed; only of a single round, as the next ones.
        InvalidInput: the API server answers with something other than a list.
        LoadUnknown: a source of load does not answer.
    """
    clock = SteadyClock(time.time, elapsed)
    async with ApiClient(access) as client, AsyncExitStack() as stack:
        started(f"API server  {access.server} ({access.source})")
        if settings.health_address is not None:
            site = _health(settings.health_address, metrics)
            started(f"health      {await stack.enter_async_context(site)}")
        evictions, pod_moves = _executors(settings, client, clock, metrics)
        path, dry_run = settings.policy_config_file, settings.dry_run
        rebalancer = Rebalancer(
            client=client,
            file=None if path is None else PolicyFile(path),
            evictions=evictions,
            pod_moves=pod_moves,
            decide=_decides(settings),
            held=held,
            clock=clock,
            dry_run=dry_run,
            timed=metrics.time_strategy,
            windows=settings.move_windows,
            least_gain=settings.least_gain,
            marks=_marks(settings, client, clock, metrics),
        )
        if settings.descheduling_interval:
            await _repeated(rebalancer, settings, client, access, metrics, stop)
            return None
        run = _until_emptied if settings.defragment and not dry_run else _once
        return await run(rebalancer, metrics, clock, settings.most_moves)


async def _repeated(
    rebalancer: Rebalancer,
    settings: RebalanceSettings,
    client: ApiClient,
    access: Credentials,
    metrics: DeschedulingMetrics,
    stop: Callable[[], Awaitable[object]],
) -> None:
    """Run rounds until `stop` returns."""

    def done(outcome: str, took_s: float) -> None:
        metrics.count_round(outcome, took_s)
        metrics.policy_broken.set(bool(rebalancer.file and rebalancer.file.problems))

    lease = _lease(settings, client) if settings.leader_elect else None
    rounds = rebalancer.run(settings.descheduling_interval, done, settings.most_moves)
    async with asyncio.TaskGroup() as tasks:
        running = (tasks.create_task(access.renew()), tasks.create_task(_lead(lease, rounds)))
        await stop()
        for task in running:
            task.cancel()
    if lease is not None:
        await lease.release()


def _health(
    address: tuple[str, int], metrics: DeschedulingMetrics
) -> AbstractAsyncContextManager[str]:
    """Return the server of health and metrics as a context that yields its URL."""
    hosts = Hosts.of(address[0], ())
    access = Access(HEALTH_LIMITS, hosts, refusals(metrics.registry))
    return listening(health_paths(metrics.registry), address, _SHUTDOWN_S, access)


def _executors(
    settings: RebalanceSettings,
    client: ApiClient,
    clock: Callable[[], float],
    metrics: DeschedulingMetrics,
) -> tuple[Evictions, PodMoves | None]:
    """Return the executors of plans at the rate of the settings; PodMoves only in their modes."""
    pace = Pace(settings.client_connection_qps, settings.client_connection_burst)
    reporter = OutcomeReporter(client, socket.gethostname(), metrics.count_move)
    parts = (client, clock, pace, reporter)
    if settings.mode is Mode.EVICT_ONLY:
        return Evictions(*parts), None
    return Evictions(*parts), PodMoves(*parts, MoveMode[settings.mode.name])


def _decides(settings: RebalanceSettings) -> Callable[[RoundInput, Held], Decision]:
    """Return what decides a round."""

    def empties(look: RoundInput, held: Held) -> Decision:
        return emptying.decide(look, held, TimeLimit.after(SECONDS, time.monotonic))

    if settings.defragment:
        return empties
    if settings.make_room:
        return pending.decide
    return upstream.decide if settings.compat is Compat.UPSTREAM else planner.decide


def _marks(
    settings: RebalanceSettings,
    client: ApiClient,
    clock: Callable[[], float],
    metrics: DeschedulingMetrics,
) -> NodeMarks | None:
    if not settings.defragment:
        return None
    return NodeMarks(client, clock, hands_over=settings.hand_over, counted=metrics.count_node)


async def _until_emptied(
    rebalancer: Rebalancer,
    metrics: DeschedulingMetrics,
    clock: Callable[[], float],
    most_moves: int | None,
) -> Round:
    """Run rounds until no more nodes can be emptied; return them as one."""
    done = Round(plan=Plan())
    while True:
        left = None if most_moves is None else most_moves - len(done.outcomes)
        found = await _once(rebalancer, metrics, clock, left)
        done = done.followed_by(found)
        if not found.outcomes:
            return done
        if all(outcome.result is Result.ERROR for outcome in found.outcomes):
            return done.followed_by(Round(plan=Plan(), settled=await rebalancer.give_back()))
        await rebalancer.settle(found.outcomes)


async def _once(
    rebalancer: Rebalancer,
    metrics: DeschedulingMetrics,
    clock: Callable[[], float],
    most_moves: int | None,
) -> Round:
    began = clock()
    found = await rebalancer.round(most_moves=most_moves)
    metrics.count_round("done", clock() - began)
    return found


async def _lead(lease: Lease | None, running: Awaitable[None]) -> None:
    """Run rounds; with a lease, only while it is held."""
    if lease is None:
        await running
        return
    await lease.acquire()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_keep(lease))
        await running


async def _keep(lease: Lease) -> None:
    try:
        await lease.keep()
    except LeadershipLost as exc:
        log.error("leadership lost, ending at once", why=str(exc))
        os._exit(1)  # Another one evicts from now on.


def _lease(settings: RebalanceSettings, client: ApiClient) -> Lease:
    name = (settings.leader_elect_resource_namespace, settings.leader_elect_resource_name)
    identity = f"{socket.gethostname()}_{uuid4()}"
    timing = Timing(
        int(settings.leader_elect_lease_duration),
        settings.leader_elect_renew_deadline,
        settings.leader_elect_retry_period,
    )
    return Lease(client, name, identity, time.time, elapsed, timing)
