"""Rounds of rebalancing: look, decide, evict; once, or again and again.

A round sees all that its policy asks for, or it does nothing: what cannot be read is an error that
is told, and nobody is evicted because of half a picture (docs/adr/0032).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog

from reserver.errors import ConfigurationError, ReserverError
from reserver.kube.api.client import ApiClient
from reserver.kube.rebalance.evictions import Evictions, Outcome, Result, Terms
from reserver.kube.rebalance.listing import list_cluster
from reserver.kube.rebalance.loads import Loads
from reserver.kube.rebalance.policyfile import PolicyFile
from reserver.rebalance.deciding import Decision, Look, Timed, untimed
from reserver.rebalance.plan import Move, Plan
from reserver.rebalance.scene import Held
from reserver.rebalance.spells import Rounds

log = structlog.get_logger(__name__)

SAMPLE_S = 15.0
"""How often metrics.k8s.io is asked between rounds, in seconds: as often as metrics-server knows
something new."""

_PATIENCE_S = 120.0
"""So long one round tries what a budget forbids for now, in seconds, if the interval allows."""

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Who decides.

    Attributes:
        decide: how to judge.
        held: what reservations hold, by node.
        timed: told how long each strategy takes.
    """

    decide: Callable[[Look, Held], Decision]
    held: Callable[[], Awaitable[Held]]
    timed: Timed = untimed


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round did.

    Attributes:
        plan: what it was to do.
        outcomes: what became of the moves; without any in a dry run.
    """

    plan: Plan
    outcomes: tuple[Outcome, ...] = ()


class Rebalancer:
    """Runs rounds.

    Attributes:
        loads: what is known of load.
    """

    def __init__(
        self,
        client: ApiClient,
        file: PolicyFile,
        evictions: Evictions,
        judge: Judge,
        clock: Callable[[], float],
        *,
        dry_run: bool = False,
    ) -> None:
        """Run rounds by a policy file.

        Args:
            client: to the API server.
            file: of the policy.
            evictions: evict pods.
            judge: decides.
            clock: unix seconds.
            dry_run: nothing is evicted.
        """
        self._client = client
        self._file = file
        self._evictions = evictions
        self._judge = judge
        self._clock = clock
        self._dry_run = dry_run
        self._rounds: Mapping[str, Rounds] = {}
        self.loads = Loads(client, clock)

    async def round(self, most_s: float = _PATIENCE_S) -> Round:
        """Look, decide and evict once.

        Args:
            most_s: so long what a budget forbids is tried, in seconds.

        Raises:
            ApiError: the cluster cannot be listed.
            InvalidInput: the API server answers with what is no list.
            LoadUnknown: a source of load does not say.
            ReserverError: whoever knows what reservations hold does not say.
            ConfigurationError: the policy is broken, and was never good.
        """
        dump = await list_cluster(self._client)
        for broken in dump.broken[:_MOST_SHOWN]:
            log.warning("object passed over", what=broken.what, why=str(broken.error))
        inventory = dump.inventory
        policy = self._file.read(inventory.priority_classes.get)
        loads = await self.loads.read(policy, inventory)
        look = Look(
            policy=policy,
            inventory=inventory,
            loads=loads,
            rounds=self._rounds,
            now=self._clock(),
            timed=self._judge.timed,
        )
        held = await self._judge.held()
        # In a thread, because it may take seconds, and a Lease is to be renewed meanwhile.
        decision = await asyncio.to_thread(self._judge.decide, look, held)
        self._rounds = decision.rounds
        plan = decision.plan
        for note in plan.notes:
            log.info("rebalancing", note=note)
        if self._dry_run:
            _tell(plan.moves)
            return Round(plan=plan)
        terms = Terms(
            grace_period_s=policy.grace_period_seconds,
            tells_failures=policy.eviction_failure_event_notification,
            patience_s=min(most_s, _PATIENCE_S),
        )
        outcomes = await self._evictions.carry_out(plan.moves, terms)
        left = [each.move for each in outcomes if each.result is not Result.ERROR]
        self.loads.left(left, inventory, policy.grace_period_seconds)
        return Round(plan=plan, outcomes=tuple(outcomes))

    async def run(self, interval_s: float, done: Callable[[bool, float], None]) -> None:
        """Run rounds until cancelled; one that fails is told, and the next one tries again.

        Args:
            interval_s: from the beginning of one to that of the next, in seconds.
            done: told whether a round did what it was to do, and how long it took in seconds.
        """
        while True:
            began = self._clock()
            try:
                await self.round(interval_s)
            except ConfigurationError:
                raise
            except ReserverError as exc:
                log.error("round failed, nothing more is evicted in it", why=str(exc))
                done(False, self._clock() - began)  # noqa: FBT003 - whether it succeeded
            else:
                done(True, self._clock() - began)  # noqa: FBT003 - as above
            await self._rest(began + interval_s)

    async def _rest(self, until: float) -> None:
        """Wait for the next round, and read load meanwhile: one reading may be of a peak."""
        while (pause := until - self._clock()) > 0:
            await asyncio.sleep(min(pause, SAMPLE_S))
            if pause > SAMPLE_S:
                await self.loads.sample()


def _tell(moves: tuple[Move, ...]) -> None:
    for move in moves:
        log.info(
            "would evict pod",
            pod=str(move.pod),
            node=move.source,
            to=move.target,
            strategy=move.strategy,
            profile=move.profile,
            reason=move.reason,
        )
