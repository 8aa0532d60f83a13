"""A round: its options, what carries it out, and its summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from reserver.base.schedule import Schedule
from reserver.rebalance.capacity import Held
from reserver.rebalance.emptying import NOTHING_SETTLED, Settled
from reserver.rebalance.evictions import Evictions
from reserver.rebalance.node_marks import NodeMarks
from reserver.rebalance.outcomes import MoveOutcome
from reserver.rebalance.plan import Plan
from reserver.rebalance.pod_moves import PodMoves
from reserver.rebalance.round_input import Decision, RoundInput, Timed, untimed


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions:
    """The options of a round: its decision, and the times in which pods may move.

    Attributes:
        decide: decides a round.
        held: returns the resources that reservations hold, by node.
        timed: measures the time of each strategy.
        windows: times in which rounds move pods; always if empty.
        least_gain: the smallest gain of a move between two nodes, in percentage points; 0 for any.
        marks: writes the marks of emptied nodes; None if rounds empty no nodes.
    """

    decide: Callable[[RoundInput, Held], Decision]
    held: Callable[[], Awaitable[Held]]
    timed: Timed = untimed
    windows: tuple[Schedule, ...] = ()
    least_gain: float = 0.0
    marks: NodeMarks | None = None


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


class Executors(NamedTuple):
    """The two ways in which a plan is carried out.

    Attributes:
        pod_moves: write PodMoves, for all pods whose replacement needs a seat; None to evict them.
    """

    evictions: Evictions
    pod_moves: PodMoves | None = None
