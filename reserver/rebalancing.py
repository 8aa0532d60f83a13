"""The composition root of `reserver rebalance run`: its settings, and what runs."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import structlog

from reserver.clock import SteadyClock, elapsed
from reserver.config import LogLevel
from reserver.errors import ConfigurationError, InvalidInput, LeadershipLost
from reserver.flags import Flag, check_host, check_name, declared, parse_address
from reserver.kube.api import credentials
from reserver.kube.api.client import ApiClient
from reserver.kube.loops.lease import Lease
from reserver.kube.rebalance.evictions import Evictions, Outcome, Pace
from reserver.kube.rebalance.policyfile import PolicyFile
from reserver.kube.rebalance.rounds import Rebalancer, Round
from reserver.rebalance.deciding import Decision, Look
from reserver.server.descheduling import DeschedulingMetrics, health_application
from reserver.server.door import Door
from reserver.server.gate import Hosts
from reserver.server.http import HEALTH_LIMITS
from reserver.server.listen import listening
from reserver.wire.k8s.lease import Timing
from reserver.wire.times import parse_duration

log = structlog.get_logger(__name__)

_SHUTDOWN_S = 1.0
_FASTEST = 1000.0


def _seconds(flag: str, text: str) -> float:
    try:
        return parse_duration(text)
    except InvalidInput as exc:
        raise ConfigurationError(str(exc.under(flag))) from exc


def _duration(help_text: str) -> Flag:
    return Flag(help_text, metavar="DURATION", read=_seconds)


def _check_rate(flag: str, rate: float) -> None:
    if not 0 < rate <= _FASTEST:
        raise ConfigurationError(f"{flag}: {rate} is no rate; write a number above 0, up to 1000")


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceSettings:
    """The settings of `reserver rebalance run`: those of the descheduler have its names.

    Raises:
        ConfigurationError: some cannot work; it names the setting, the value and the remedy.
    """

    policy_config_file: Annotated[
        Path | None, Flag("Policy: descheduler/v1alpha2. It is read anew before each round.")
    ] = None
    descheduling_interval: Annotated[
        float, _duration("From the beginning of a round to that of the next. Default: one round.")
    ] = 0.0
    dry_run: Annotated[bool, Flag("Log what would be evicted, and evict nothing.")] = False
    kubeconfig: Annotated[
        Path | None, Flag("Default: $KUBECONFIG, the pod's service account, ~/.kube/config.")
    ] = None
    client_connection_qps: Annotated[float, Flag("Evictions in a second.", check=_check_rate)] = 5.0
    client_connection_burst: Annotated[
        int, Flag("Evictions at once, before that rate counts.", most=1000)
    ] = 10
    leader_elect: Annotated[
        bool, Flag("Stand by while another one holds the Lease; it takes an interval.")
    ] = False
    leader_elect_lease_duration: Annotated[
        float, _duration("How long a Lease that is not renewed keeps others out. Default: 2m17s.")
    ] = 137.0
    leader_elect_renew_deadline: Annotated[
        float, _duration("How long to go on without renewing it. Default: 1m47s.")
    ] = 107.0
    leader_elect_retry_period: Annotated[
        float, _duration("How often to renew or try to take it. Default: 26s.")
    ] = 26.0
    leader_elect_resource_name: Annotated[str, Flag("Name of the Lease.", check=check_name)] = (
        "reserver-rebalance"
    )
    leader_elect_resource_namespace: Annotated[
        str, Flag("Namespace of the Lease.", check=check_name)
    ] = "reserver-system"
    health_address: Annotated[
        tuple[str, int] | None,
        Flag(
            "Serve /healthz and /metrics here over plain HTTP, e.g. 0.0.0.0:10258.",
            metavar="ADDRESS:PORT",
            read=parse_address,
            check=check_host,
        ),
    ] = None
    log_level: Annotated[LogLevel, Flag("From this level on.")] = LogLevel.INFO

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for each in declared(self):
            try:
                each.check(getattr(self, each.field))
            except InvalidInput as exc:
                raise ConfigurationError(str(exc)) from exc
        if self.policy_config_file is None:
            raise ConfigurationError("--policy-config-file: is missing; write the policy's path")
        if self.client_connection_burst < 1:
            raise ConfigurationError("--client-connection-burst: is 0; write 1 or more")
        if self.leader_elect and not self.descheduling_interval:
            raise ConfigurationError(
                "--leader-elect: takes a --descheduling-interval; who runs once needs no Lease"
            )
        timing = self.timing
        if not timing.duration_s > timing.renew_deadline_s > timing.retry_s > 0:
            raise ConfigurationError(
                "--leader-elect-lease-duration: has to exceed --leader-elect-renew-deadline, and "
                "that --leader-elect-retry-period"
            )

    @property
    def timing(self) -> Timing:
        """How long the Lease lasts."""
        return Timing(
            int(self.leader_elect_lease_duration),
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        )


async def rebalance(
    settings: RebalanceSettings,
    decide: Callable[[Look], Decision],
    started: Callable[[str], None],
    stop: Callable[[], Awaitable[object]],
) -> Round | None:
    """Run one round and return it, or rounds until told to stop.

    Args:
        settings: what was asked for.
        decide: how to judge.
        started: told where the API server is and, if it is served, where health is.
        stop: returns once it is to end.

    Raises:
        ConfigurationError: the credentials or the policy cannot be used, or a port is taken.
        ApiError: the cluster cannot be listed; only of a single round, as the next ones.
        InvalidInput: the API server answers with what is no list.
        LoadUnknown: a source of load does not say.
    """
    access = await credentials.load(settings.kubeconfig)
    metrics = DeschedulingMetrics()
    clock = SteadyClock(time.time, time.monotonic)
    async with ApiClient(access) as client, AsyncExitStack() as stack:
        started(f"API server  {access.server} ({access.source})")
        if settings.health_address is not None:
            hosts = Hosts.of(settings.health_address[0], ())
            door = Door(HEALTH_LIMITS, hosts, metrics.count_refused)
            app = health_application(metrics.registry)
            site = listening(app, settings.health_address, _SHUTDOWN_S, door)
            started(f"health      {await stack.enter_async_context(site)}")
        assert settings.policy_config_file is not None  # noqa: S101 - the settings check it
        file = PolicyFile(settings.policy_config_file)
        pace = Pace(settings.client_connection_qps, settings.client_connection_burst)
        evictions = Evictions(
            client, clock, socket.gethostname(), pace, lambda outcome: _count(metrics, outcome)
        )
        rebalancer = Rebalancer(client, file, evictions, decide, clock, dry_run=settings.dry_run)
        if not settings.descheduling_interval:
            return await _once(rebalancer, metrics, clock)

        def done(is_done: bool, took_s: float) -> None:  # noqa: FBT001 - whether it succeeded
            metrics.round_seconds.observe(took_s)
            metrics.count_round("done" if is_done else "failed")
            metrics.policy_broken.set(bool(file.problems))

        lease = _lease(settings, client) if settings.leader_elect else None
        async with asyncio.TaskGroup() as tasks:
            running = (
                tasks.create_task(access.renew()),
                tasks.create_task(
                    _lead(lease, rebalancer.run(settings.descheduling_interval, done))
                ),
            )
            await stop()
            for task in running:
                task.cancel()
        if lease is not None:
            await lease.release()
    return None


async def _once(
    rebalancer: Rebalancer, metrics: DeschedulingMetrics, clock: Callable[[], float]
) -> Round:
    began = clock()
    found = await rebalancer.round()
    metrics.round_seconds.observe(clock() - began)
    metrics.count_round("done")
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
    return Lease(client, name, identity, time.time, elapsed, settings.timing)


def _count(metrics: DeschedulingMetrics, outcome: Outcome) -> None:
    move = outcome.move
    metrics.count_eviction(
        outcome.result.value, move.strategy, move.profile, move.pod.namespace, move.source
    )
