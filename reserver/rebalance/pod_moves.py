"""A plan is carried out as PodMoves: no pod is evicted before room is held for its replacement.

The moves of a round that need each other's room are a group: what depends on one that fails is
dropped. It says the size 1, so that they wait for nobody; where pending pods get the room it says
its own, so that none begins before all of it is written (docs/adr/0033, docs/adr/0041). The second
step of a pod follows the first one (docs/adr/0042). Where a group spans namespaces, a PodMoveGroup
that lists it is written before (docs/adr/0061).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from reserver.base.pacer import Backoff
from reserver.cluster.pod import PodName
from reserver.errors import ApiError, ConfigurationError
from reserver.moves import manifests, podmove, podmove_group
from reserver.moves.limits import DEFAULT
from reserver.moves.manifests import FailedMove, OpenMove
from reserver.moves.model import GroupMember, MoveGroup
from reserver.moves.phases import MoveMode
from reserver.rebalance import evictions
from reserver.rebalance.evictions import PacedMoves
from reserver.rebalance.move_batch import chains, makes_room
from reserver.rebalance.outcomes import MoveOutcome, Result, Terms
from reserver.rebalance.plan import PlannedMove

MOST_OPEN = DEFAULT.ahead
"""Most open PodMoves of rounds, because all PodMoves of a round take their seats at once."""

_KEEP_S = 3600
"""Seconds until an ended PodMove is deleted.

A round reads failures from PodMoves for as long (`move_batch.LONGEST_REST_S`)."""

_PAGE = "500"

log = structlog.get_logger(__name__)


@dataclass(eq=False, repr=False)
class PodMoves(PacedMoves):
    """Writes PodMoves."""

    mode: MoveMode = MoveMode.RESERVE_FIRST

    async def known(self) -> tuple[list[OpenMove], list[FailedMove]]:
        """Return the open and the failed PodMoves of all writers.

        Raises:
            ConfigurationError: the API server has no PodMoves.
            ApiError: it refused, or did not answer.
            InvalidInput: its answer is no list.
        """
        found, failed, params = list[OpenMove](), list[FailedMove](), {"limit": _PAGE}
        while True:
            try:
                page = manifests.read_page(await self.client.get(podmove.COLLECTION, params))
            except ApiError as exc:
                if exc.status != HTTPStatus.NOT_FOUND:
                    raise
                raise ConfigurationError(
                    "--mode: all but evict-only take PodMoves, which the API server does not have; "
                    "apply scheduler-config/components/moves, or write evict-only"
                ) from exc
            found += page.open
            failed += page.failed
            if not page.following:
                return found, failed
            params = {"limit": _PAGE, "continue": page.following}

    async def carry_out(self, moves: Iterable[PlannedMove], terms: Terms) -> list[MoveOutcome]:
        """Write the moves of a plan, in its order; return what became of each.

        Their names follow from the round and from that order, which is the order of their turns.
        """
        now = self.clock()
        plan, until = f"rebalance-{int(now * 1000):x}", now + terms.patience_s
        moves = tuple(moves)
        groups = _groups(plan, moves)
        undeclared = await self._declare(plan, moves, groups, until)
        outcomes, missing, steps = list[MoveOutcome](), set[str](), dict[PodName, str]()
        for order, move in enumerate(moves):
            name = _name(plan, order)
            asked = manifests.SharedFields(
                grace_period_s=terms.grace_period_s,
                group=groups[move],
                keep_s=_KEEP_S,
                mode=self.mode,
            )
            after = steps.get(move.pod)
            why = "the pod whose room it needs is not moved"
            if groups[move].name in undeclared:
                why = undeclared[groups[move].name]
            elif after == "":
                why = "the move before it is not made"
            elif move.target not in missing:
                why = await self._write(name, move, asked, until, after or "")
            steps[move.pod] = "" if why else name
            if why:
                missing.add(move.source)
                outcome = MoveOutcome(move, Result.ERROR, self.clock(), why)
            else:
                outcome = MoveOutcome(move, Result.BACKGROUND, self.clock(), pod_move=name)
            outcomes.append(outcome)
            if move.source:
                await self.reporter.report(outcome, terms)
            else:
                what = "room is not held" if why else "room is held"
                log.info(what, pod=str(move.pod), node=move.target, name=name, why=why)
        return outcomes

    async def _declare(
        self,
        plan: str,
        moves: Sequence[PlannedMove],
        groups: Mapping[PlannedMove, MoveGroup],
        until: float,
    ) -> dict[str, str]:
        """Write what lists the members of groups that span namespaces.

        Returns:
            Of each group that could not be listed, why.
        """
        members = defaultdict[str, list[GroupMember]](list)
        moved = set[PodName]()
        for order, move in enumerate(moves):
            if groups[move].across:
                uid = "" if move.pod in moved else move.uid
                of_move = PodName(move.pod.namespace, _name(plan, order))
                members[groups[move].name].append(GroupMember(of_move, uid))
            moved.add(move.pod)
        refused = dict[str, str]()
        for name, listed in members.items():
            body = podmove_group.manifest(name, listed)
            if why := await self._create(podmove_group.COLLECTION, body, until):
                refused[name] = why
        return refused

    async def _write(
        self, name: str, move: PlannedMove, terms: manifests.SharedFields, until: float, after: str
    ) -> str:
        """Write a PodMove, again if there is no answer; return why it is not there."""
        body = manifests.manifest(
            move.pod,
            terms,
            uid="" if after else move.uid,
            after=after,
            to=move.target or "",
            metadata={"name": name, "labels": manifests.labels_of(move.profile, move.strategy)},
        )
        return await self._create(podmove.collection(move.pod.namespace), body, until)

    async def _create(self, collection: str, body: object, until: float) -> str:
        """Create an object, again if there is no answer; return why it is not there."""
        backoff = Backoff(evictions.FIRST_PAUSE_S, evictions.LAST_PAUSE_S)
        again = 0.0
        while True:
            await self.pace.wait(self.clock(), again)
            try:
                await self.client.create(collection, body)
            except ApiError as exc:
                if exc.is_conflict and backoff.failures:
                    return ""  # An earlier request was carried out after all.
                again = self.clock() + backoff.failed()
                if exc.is_definite or again > until:
                    return str(exc)
            else:
                return ""


def _name(plan: str, order: int) -> str:
    return f"{plan}-{order:03}"


def _groups(plan: str, moves: Sequence[PlannedMove]) -> dict[PlannedMove, MoveGroup]:
    """Return the group of each move."""
    order_of = {move: order for order, move in enumerate(moves)}
    return {
        move: MoveGroup(
            _name(plan, order_of[chain[0]]),
            len(chain) if makes_room(chain) else 1,
            across=len({each.pod.namespace for each in chain}) > 1,
        )
        for chain in chains(moves)
        for move in chain
    }
