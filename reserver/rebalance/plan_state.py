"""The state that moves pods: strategies see the effect of all earlier moves of the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, Taint, Toleration
from reserver.cluster.labels import EVERYTHING, Selector
from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.candidate import Candidate, Floats, K
from reserver.rebalance.cluster_state import Preference
from reserver.rebalance.measured_load import Rounds
from reserver.rebalance.plan import Why
from reserver.rebalance.plan_builder import PlanBuilder
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.round_input import RoundInput
from reserver.scheduling.node_rules import allowed_by_affinity, tolerated


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanState:
    """One strategy's turn within a plan.

    Protections are judged once a pod is a candidate, so that the plan can name the reason.

    Attributes:
        given: the inputs of the round.
        rounds: LowNodeLoad's state for the next round, by profile; filled while profiles run.
        builder: the plan so far.
        profile: the name of the profile.
        strategy: the name of the plugin.
        protects: returns the protection of a pod from this profile's evictor.
        looked_at: bool array, rows: nodes whose pods the strategy considers.
        offered: bool array, rows: nodes that may be targets.
        weights: returns, for each row, the weight of the preferred node affinities that it meets.
        keeps_preferences: no pod goes to a node that it prefers less, because another strategy of
            the policy would move the pod back.
        tries_others: any copy may leave a crowded node, the least important first.
    """

    given: RoundInput
    rounds: dict[str, Rounds]
    builder: PlanBuilder
    profile: str
    strategy: str
    protects: Callable[[int], str]
    looked_at: Bools
    offered: Bools
    weights: Callable[[tuple[Preference, ...]], Floats]
    keeps_preferences: bool = False
    tries_others: bool = True

    @property
    def index(self) -> PodIndex:
        """The pods and nodes as they were before the plan."""
        return self.builder.index

    @property
    def planned(self) -> PlanningSnapshot:
        """The cluster as the moves so far have made it."""
        return self.builder.planned

    @property
    def rows(self) -> Rows:
        """The row of each pod."""
        return self.builder.planned.rows

    @property
    def now(self) -> float:
        """Unix seconds."""
        return self.given.now

    def chosen(self, namespaces: Choice, selector: Selector = EVERYTHING) -> Bools:
        """Return, for each pod on a node, whether the strategy looks at it and at the node."""
        chosen: Bools = self.index.chosen(namespaces, selector) & (self.rows != NOWHERE)
        chosen &= self.looked_at[self.rows]
        return chosen

    def together(self, kinds: Sequence[K]) -> Iterable[Sequence[K]]:
        """Return all kinds: the least important pods leave first, whatever their kind."""
        return (kinds,)

    def batches(self, found: Bools) -> Iterator[list[int]]:
        """Yield all pods at once, the least important first."""
        yield self.index.least_first(np.flatnonzero(found))

    def passes(self, pod: int) -> bool:  # noqa: ARG002 - the shape of a state
        """Return True."""
        return True

    fits = passes

    def has_left(self, pod: int) -> bool:
        """Return whether a pod has been moved."""
        return bool(self.builder.moved[pod])

    def tolerates(self, tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
        """Return whether one of these tolerates a taint, as kube-scheduler has it."""
        return any(own.tolerates(taint) for own in tolerations)

    def matching(self, demands: Constraints) -> Bools:
        """Return the rows that meet node selector and required node affinity."""
        return allowed_by_affinity(demands, self.planned.snapshot)

    def admitting(self, demands: Constraints) -> Bools:
        """Return the rows to which pods with such constraints may be sent, room aside."""
        snapshot = self.planned.snapshot
        may = self.matching(demands) & tolerated(demands, snapshot)
        may &= self.looked_at & self.offered & ~self.planned.closed & ~snapshot.topology.cordoned
        return may

    def conflicts(self, looked_at: Bools) -> _Foes:  # noqa: ARG002 - the shape of a state
        """Return the conflicts of all pods, as kube-scheduler has them."""
        return _Foes(self.planned)

    def why(self, reason: str, improves: str = "") -> Why:
        """Return why this strategy moves a pod."""
        return Why(self.strategy, self.profile, reason, improves)

    def protection(self, pod: int) -> str:
        """Return what protects a pod; empty if nothing does."""
        is_deleted = self.planned.pods[pod].terminating
        return "it is being deleted" if is_deleted else self.protects(pod)

    def may_step_aside(self, pod: int) -> Bools | None:
        """Return the rows where a pod may go that has no reason to leave; None if it is to stay."""
        if self.protection(pod):
            return None
        return self._tolerated(pod) & self.looked_at & self.offered & self._not_preferred_less(pod)

    def _tolerated(self, pod: int) -> Bools:
        """Return the rows of nodes whose taints, soft ones too, a pod tolerates."""
        own = self.planned.pods[pod].constraints.tolerations
        found = np.ones(len(self.offered), dtype=np.bool_)
        for row, taints in self.index.taints.items():
            found[row] = all(self.tolerates(own, taint) for taint in taints)
        return found

    def move(self, candidate: Candidate) -> None:
        """Move a candidate to a node that has room for it, if nothing protects it."""
        pod, why = candidate.pod, self.why(candidate.reason, candidate.improves)
        if protection := self.protection(pod):
            self.builder.keep(pod, why, protection)
        elif self.rows[pod] == NOWHERE:
            self.builder.remove(pod, why)
        else:
            accept = (
                self.offered.copy() if candidate.accept is None else candidate.accept & self.offered
            )
            accept &= self._not_preferred_less(pod)
            score, waits = candidate.score, candidate.waits
            gain = candidate.gain
            is_sent = self.builder.send(pod, accept, why, score, waits=waits, gain=gain)
            if candidate.restarts and not is_sent:
                self.builder.renew(pod, self.offered, why)

    def _not_preferred_less(self, pod: int) -> Bools | bool:
        preferences = self.index.pods[pod].preferences
        if not self.keeps_preferences or not preferences:
            return True
        met = self.weights(preferences)
        not_less: Bools = met >= met[self.rows[pod]]
        return not_less


class _Foes:
    """Pods on nodes where their own required anti-affinity forbids them."""

    def __init__(self, planned: PlanningSnapshot) -> None:
        self._planned = planned

    def has(self, pod: int) -> bool:
        # Only pods leave their foes here: a pod without foes at first has none now.
        planned = self._planned
        may = planned.may_be_near_foes(pod)[planned.rows[pod]]
        return bool(may) and planned.is_near_foes(pod)

    def leave(self, pod: int) -> None:
        """Do nothing: the planning snapshot shows the move."""
