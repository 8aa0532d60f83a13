"""Rounds of rebalancing: read the cluster, decide, and evict or write PodMoves, once or repeatedly.

A round reads every source that its policy needs, or evicts no pod: an incomplete picture is an
error (docs/adr/0032).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from reserver.base.clock import is_ahead
from reserver.base.schedule import Schedule
from reserver.cluster.pod import PodName
from reserver.errors import ConfigurationError, ReserverError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.times import show_moment
from reserver.moves.manifests import FailedMove, OpenMove
from reserver.moves.windows import judge
from reserver.rebalance.capacity import Held
from reserver.rebalance.dump import list_cluster
from reserver.rebalance.emptying import NOTHING_SETTLED, Settled, whole_nodes
from reserver.rebalance.evictions import Evictions
from reserver.rebalance.load_sources import Loads
from reserver.rebalance.measured_load import Rounds
from reserver.rebalance.move_batch import Moving, divide, once, resting
from reserver.rebalance.node_marks import NodeMarks
from reserver.rebalance.outcomes import MoveOutcome, Result, Terms
from reserver.rebalance.pending import without
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.pod_moves import MOST_OPEN, PodMoves
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.policy_file import PolicyFile
from reserver.rebalance.round_input import Decision, RoundInput, Timed, untimed

log = structlog.get_logger(__name__)

SAMPLE_S = 15.0
"""Seconds between two requests to metrics.k8s.io: the resolution of metrics-server."""

_PATIENCE_S = 120.0
"""Seconds in which one round repeats evictions that a budget forbids, if the interval allows."""

_MOST_SHOWN = 20

_POLL_S = 2.0
"""Seconds between two checks whether PodMoves have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The summary of a round.

    Attributes:
        plan: the plan.
        outcomes: the outcomes of the moves; empty in a dry run.
        left: the number of moves that the next round makes.
        settled: the nodes whose emptying has ended.
    """

    plan: Plan
    outcomes: tuple[MoveOutcome, ...] = ()
    left: int = 0
    settled: Settled = NOTHING_SETTLED

    def followed_by(self, later: Round) -> Round:
        """Return this round and a later one as one."""
        moves = (*self.plan.moves, *later.plan.moves)
        ended = zip(self.settled, later.settled, strict=True)
        return replace(
            later,
            plan=replace(later.plan, moves=moves),
            outcomes=(*self.outcomes, *later.outcomes),
            settled=Settled._make(tuple(dict.fromkeys((*one, *two))) for one, two in ended),
        )


@dataclass(eq=False, repr=False, kw_only=True)
class Rebalancer:
    """Runs rounds by a policy file.

    Attributes:
        file: the policy; None for an empty policy.
        pod_moves: writes PodMoves for all pods whose replacement needs a seat; None to evict them.
        decide: decides a round.
        held: returns the resources that reservations hold, by node.
        clock: unix seconds.
        dry_run: no pod is evicted.
        timed: measures the time of each strategy.
        windows: times in which rounds move pods; always if empty.
        least_gain: the smallest gain of a move between two nodes, in percentage points; 0 for any.
        marks: writes the marks of emptied nodes; None if rounds empty no nodes.
        loads: the sources of load.
    """

    client: ApiClient
    file: PolicyFile | None
    evictions: Evictions
    pod_moves: PodMoves | None
    decide: Callable[[RoundInput, Held], Decision]
    held: Callable[[], Awaitable[Held]]
    clock: Callable[[], float]
    dry_run: bool = False
    timed: Timed = untimed
    windows: tuple[Schedule, ...] = ()
    least_gain: float = 0.0
    marks: NodeMarks | None = None

    def __post_init__(self) -> None:
        """Begin without rounds."""
        self._rounds: Mapping[str, Rounds] = {}
        self.loads = Loads(self.client, self.clock)

    async def round(self, most_s: float = _PATIENCE_S, most_moves: int | None = None) -> Round:
        """Read the cluster, decide and evict once.

        Args:
            most_s: seconds in which evictions that a budget forbids are repeated.
            most_moves: most pods to move; None for the limit of the policy.

        Raises:
            ApiError: the cluster cannot be listed.
            InvalidInput: the API server answers with something other than a list.
            LoadUnknown: a source of load does not answer.
            ReserverError: Reserver does not answer what reservations hold.
            ConfigurationError: the policy is invalid, and no earlier one was valid; or the API
                server has no PodMoves, which the round would write.
        """
        windows = () if self.dry_run else self.windows
        if windows and (opens_at := judge((windows,), self.clock()).opens_at):
            note = f"rounds move nothing before {show_moment(opens_at)}, by --move-window"
            return replace(_noted(Plan(notes=(note,))), settled=await self.give_back())
        under_way, failed = await self._known()
        own = [move.pod.namespace for move in under_way if move.is_rebalance]
        look = await self._look()
        leaving = {move.pod for move in under_way}
        policy = look.policy.with_most_moves(most_moves)
        look = replace(look, cluster=without(look.cluster, leaving), policy=policy)
        held = await self.held()
        # In a thread, because it may take seconds, and a Lease is to be renewed meanwhile.
        decision = await asyncio.to_thread(self.decide, look, held)
        self._rounds = decision.rounds
        moving = frozenset((move.pod, move.uid) for move in under_way)
        rests = resting(failed, look.now)
        plan, seats, left = self._divided(decision.plan, look, (moving, rests), own)
        done = replace(_noted(plan), left=left)
        if self.dry_run:
            _tell(plan.moves)
            return done
        nodes = NOTHING_SETTLED
        if self.marks is not None:
            nodes = await self.marks.prepare(plan, look.cluster, held, leaving)
        outcomes = await self._carry_out(plan.moves, seats, look, min(most_s, _PATIENCE_S))
        return replace(done, outcomes=tuple(outcomes), settled=nodes)

    async def give_back(self) -> Settled:
        """Give back the nodes that no pod leaves; return those whose emptying has ended."""
        if self.marks is None:
            return NOTHING_SETTLED
        under_way, _ = await self._known()
        cluster, held = (await self._look()).cluster, await self.held()
        return await self.marks.prepare(Plan(), cluster, held, {move.pod for move in under_way})

    async def settle(self, outcomes: Sequence[MoveOutcome]) -> None:
        """Return once the PodMoves of a round have ended."""
        names = {PodName(each.move.pod.namespace, each.pod_move) for each in outcomes}
        while open_ := sum(move.name in names for move in (await self._known())[0]):
            log.info("PodMoves are under way", open=open_)
            await asyncio.sleep(_POLL_S)

    async def _look(self) -> RoundInput:
        """Return all that a round looks at."""
        dump = await list_cluster(self.client)
        for broken in dump.broken[:_MOST_SHOWN]:
            log.warning("object skipped", what=broken.what, why=str(broken.error))
        classes = dump.inventory.priority_classes.get
        policy = self.file.read(classes) if self.file else DeschedulerPolicy()
        return RoundInput(
            policy=policy,
            cluster=dump.inventory,
            loads=await self.loads.read(policy, dump.inventory),
            rounds=self._rounds,
            now=self.clock(),
            timed=self.timed,
            least_gain=self.least_gain,
        )

    async def _known(self) -> tuple[list[OpenMove], list[FailedMove]]:
        """Return the PodMoves that a round looks at; none if none are to be written."""
        return ([], []) if self.pod_moves is None else await self.pod_moves.known()

    def _divided(
        self, plan: Plan, look: RoundInput, apart: tuple[Moving, Moving], own: Sequence[str]
    ) -> tuple[Plan, int, int]:
        """Return the part of a plan to carry out now, its number of seats, and of moves left.

        Args:
            plan: the whole plan.
            look: the input of the plan.
            apart: the pods that move already, and the pods that rest after a failure.
            own: the namespaces of open PodMoves of rounds, each as often as it has one.
        """
        moving, rests = apart
        if self.pod_moves is None:
            moves = once(plan.moves)
            further = len(plan.moves) - len(moves)
            note = f"an evicted pod is not moved again: {further} further moves are left out"
            notes = (*plan.notes, note) if further else plan.notes
            return replace(plan, moves=moves, notes=notes), 0, 0
        now, most = plan.moves, max(0, MOST_OPEN - len(own))
        if self.marks is not None:
            begun = {name for name, node in look.cluster.nodes.items() if node.is_marked}
            now = whole_nodes(plan, begun, rests, most)
        found = divide(now, look.cluster, moving | rests, MOST_OPEN, own)
        moves, notes = (*found.seated, *found.evicted), plan.notes
        if left := len(plan.moves) - len(moves):
            notes = (*notes, f"{left} moves are left to the next round")
        return replace(plan, moves=moves, notes=notes), len(found.seated), left

    async def _carry_out(
        self, moves: tuple[PlannedMove, ...], seats: int, look: RoundInput, patience_s: float
    ) -> list[MoveOutcome]:
        """Write the first moves as PodMoves, as many as take seats, and evict the others."""
        terms = Terms(
            grace_period_s=look.policy.grace_period_seconds,
            tells_failures=look.policy.eviction_failure_event_notification,
            patience_s=patience_s,
        )
        outcomes = list[MoveOutcome]()
        if self.pod_moves is not None:
            outcomes += await self.pod_moves.carry_out(moves[:seats], terms)
        outcomes += await self.evictions.carry_out(moves[seats:], terms)
        done = (each.move for each in outcomes if each.result is not Result.ERROR)
        gone = [move for move in once(done) if move.source]
        self.loads.left(gone, look.cluster, terms.grace_period_s)
        return outcomes

    async def run(
        self,
        interval_s: float,
        done: Callable[[str, float], None],
        most_moves: int | None = None,
    ) -> None:
        """Run rounds until cancelled; report a failed round and go on with the next one.

        Args:
            interval_s: seconds between the starts of two rounds.
            most_moves: as in `round`.
            done: receives the outcome of a round, ``done`` or ``failed``, and its seconds.
        """
        while True:
            began = self.clock()
            try:
                await self.round(interval_s, most_moves)
            except ConfigurationError:
                raise
            except ReserverError as exc:
                log.error("round failed, nothing more is evicted in it", why=str(exc))
                done("failed", self.clock() - began)
            else:
                done("done", self.clock() - began)
            await self._rest(began, interval_s)

    async def _rest(self, began: float, interval_s: float) -> None:
        """Wait for the next round, and read load meanwhile: one reading may be of a peak."""
        next_at = began + interval_s
        while is_ahead(next_at, now := self.clock(), longest_s=2 * interval_s):
            await asyncio.sleep(min(next_at - now, SAMPLE_S))
            if next_at - now > SAMPLE_S:
                await self.loads.sample()


def _noted(plan: Plan) -> Round:
    """Return a round of which nothing is done yet, and log the notes of its plan."""
    for note in plan.notes:
        log.info("rebalancing", note=note)
    return Round(plan=plan)


def _tell(moves: tuple[PlannedMove, ...]) -> None:
    for move in moves:
        about = {"strategy": move.strategy, "profile": move.profile, "reason": move.reason}
        place = {"pod": str(move.pod), "node": move.source, "to": move.target}
        log.info("would evict pod", **place, **about, **move.worth)
