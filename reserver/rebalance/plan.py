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
        uid: distinguishes this pod from a later one of the same name.
        source: the current node; empty for a pending pod that gets room.
        target: the new node; None if kube-scheduler chooses.
        strategy: the plugin that asks for the move.
        profile: the profile of the policy that the plugin runs in; empty outside of a policy.
        reason: the reason to leave, in the plugin's words.
        improves: the improvement after the move; empty if unknown.
        gain: percentage points by which the usage of the fuller node of the two falls; None if the
            strategy does not compare nodes.
        cost: the cost of the move (`rebalance.move_cost`): 1 for an ordinary pod.
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
    """The reason of a move.

    Attributes:
        strategy: the plugin that asks for the move.
        profile: the profile of the policy that the plugin runs in.
        reason: the reason to leave.
        improves: the improvement after the move.
        gain: the gain of the move, as in `PlannedMove`.
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


def named_to(reader: PodName, other: PodName) -> str:
    """Return a pod's name in a reason; whoever reads the other pod's events reads the reason."""
    return str(other) if other.namespace == reader.namespace else "a pod of another namespace"


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
        allocatable: its allocatable resources.
        held: resources that active reservations hold there.
        before: usage of its pods, by the measure that the plan reads.
        after: the same, after all moves.
    """

    node: str
    allocatable: Mapping[str, int]
    held: Mapping[str, int]
    before: Mapping[str, int]
    after: Mapping[str, int]


class Bound(NamedTuple):
    """A bound on how much better another plan could be.

    Attributes:
        fewest_moves: no plan with the same effect has fewer moves; None without a proof.
        most_nodes: no plan empties more nodes; None without a proof, or if no node is to be empty.
        by: the source of the proof, such as a solver and its seconds.
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
    """Moves, and their effect.

    Attributes:
        moves: in the order of execution. A move with a target has room there when its turn comes.
        kept: candidates that stay; at most `MOST_KEPT`.
        more_kept: the number of further candidates that stay.
        landings: nodes of pending pods after the moves, in the order of their placement.
        emptied: nodes that have only daemon pods afterwards.
        nodes: all nodes, sorted by name.
        bound: a bound on better plans.
        notes: further remarks for people, such as a skipped node or a failed plugin.
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
        """The cost of all moves."""
        return round(sum(move.cost for move in self.moves), 1)

    @property
    def reached(self) -> int:
        """The number of emptied nodes and of pods that get room; 0 for other goals."""
        return len(self.emptied) or len(self.landings)


MOST_KEPT = 10_000
"""Most candidates that stay and that a plan names."""
