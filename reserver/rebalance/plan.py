"""A plan: which pods move where, in which order, and what becomes of the nodes.

A plan is a value. Strategies and solvers make it; commands show it, and runs carry it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.cluster.pod import Pod, PodName


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """A pod that leaves its node.

    Attributes:
        pod: namespace and name.
        uid: tells this pod from a later one of the same name.
        source: the node that it leaves; empty for a pending pod that gets the room of others.
        target: the node that it goes to; None where kube-scheduler is to choose.
        strategy: the plugin that asks for it.
        profile: the profile of the policy that the plugin runs in; empty outside of a policy.
        reason: why it has to leave, in the plugin's words.
        improves: what is better once it has moved; empty if nobody can tell.
        gain: by how many percentage points the fuller one of its two nodes is used less afterwards;
            None where the strategy does not compare nodes.
        cost: of the move, as `rebalance.move_cost` has it: 1 for an ordinary pod.
    """

    pod: PodName
    uid: str
    source: str
    target: str | None
    strategy: str
    profile: str = ""
    reason: str = ""
    improves: str = ""
    gain: float | None = None
    cost: float = 1.0

    @property
    def worth(self) -> Mapping[str, float]:
        """Its cost, and its gain where it has one."""
        return {"cost": self.cost} | ({} if self.gain is None else {"gain": self.gain})


class Why(NamedTuple):
    """Why a pod moves.

    Attributes:
        strategy: the plugin that asks for it.
        profile: the profile of the policy that the plugin runs in.
        reason: why it has to leave.
        improves: what is better once it has moved.
        gain: of a move, as `PlannedMove` has it.
    """

    strategy: str
    profile: str = ""
    reason: str = ""
    improves: str = ""
    gain: float | None = None

    def move(self, pod: Pod, source: str, target: str | None) -> PlannedMove:
        """Return the move of a pod from a node to another one."""
        return PlannedMove(
            pod=pod.name, uid=pod.uid, source=source, target=target, **self._asdict()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A pod that a plugin would have moved, and that stays where it is.

    Attributes:
        pod: namespace and name.
        node: where it is; empty for a pending pod that gets no node.
        strategy: the plugin that asked for it.
        profile: the profile of the policy that the plugin runs in; empty outside of a policy.
        why: why it stays.
    """

    pod: PodName
    node: str
    strategy: str
    profile: str = ""
    why: str


class Landing(NamedTuple):
    """A pending pod, and the node that has room for it once all moves are made."""

    pod: PodName
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUse:
    """The usage of a node before and after a plan.

    Amounts are in millicores of cpu and in base units of all else.

    Attributes:
        node: its name.
        allocatable: what it offers to pods.
        held: what active reservations hold there.
        before: what its pods use, by the measure that the plan was judged by.
        after: the same, once all moves are made and all pods have landed.
    """

    node: str
    allocatable: Mapping[str, int]
    held: Mapping[str, int]
    before: Mapping[str, int]
    after: Mapping[str, int]


class Bound(NamedTuple):
    """A bound on how much better another plan could be.

    Attributes:
        fewest_moves: no plan with the same effect has fewer moves; None if nobody has proved any.
        most_nodes: no plan empties more nodes; None if nobody has proved any, or none is to be.
        by: who has proved it, such as a solver and how long it took.
    """

    fewest_moves: int | None = None
    most_nodes: int | None = None
    by: str = ""

    def tightened(self, fewest_moves: int | None, most_nodes: int | None, by: str) -> Bound:
        """Return this bound, or what another one has proved where that says more."""
        most = self.most_nodes
        if most_nodes is not None and (most is None or most_nodes < most):
            most = most_nodes
        fewest = max(self.fewest_moves or 0, fewest_moves or 0)
        if (fewest, most) == (self.fewest_moves, self.most_nodes):
            return self
        return Bound(fewest, most, by)


NO_BOUND = Bound()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Moves, and what they are good for.

    Attributes:
        moves: in the order in which they are made. One that has a target has room there when its
            turn comes.
        kept: what stays that a plugin would have moved; at most `MOST_KEPT`.
        more_kept: so many of those were left out.
        landings: where pending pods go after the moves, in the order in which they are to land.
        emptied: nodes that have none but daemon pods afterwards.
        nodes: all nodes, by name.
        bound: how much better another plan could be.
        notes: what else people have to know: a node that was passed over, a plugin that failed.
    """

    moves: tuple[PlannedMove, ...] = ()
    kept: tuple[Kept, ...] = ()
    more_kept: int = 0
    landings: tuple[Landing, ...] = ()
    emptied: tuple[str, ...] = ()
    nodes: tuple[NodeUse, ...] = field(default=(), repr=False)
    bound: Bound = NO_BOUND
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        """What all moves cost."""
        return round(sum(move.cost for move in self.moves), 1)

    @property
    def reached(self) -> int:
        """How many nodes are emptied and pods get room, where a plan is for that; else 0."""
        return len(self.emptied) or len(self.landings)


MOST_KEPT = 10_000
"""How many pods that stay a plan names; there may be as many as there are pods."""
