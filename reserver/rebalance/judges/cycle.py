"""The context of every judge: stage, profile, and the pods and nodes it may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reserver.cluster.columns import Bools
from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.snapshot import Rows
from reserver.rebalance.arguments.selecting import Choice
from reserver.rebalance.cluster_state import ListedPod, Preference
from reserver.rebalance.measured_load import MeasuredLoad
from reserver.rebalance.plan import Why
from reserver.rebalance.plan_builder import Floats, PlanBuilder

Protects = Callable[[ListedPod], str]
"""Returns what protects a pod from eviction; empty if nothing does."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cycle:
    """One strategy's turn.

    Attributes:
        stage: what was moved so far.
        profile: the name of the profile.
        strategy: the name of the plugin.
        protects: what protects a pod from this profile's evictor.
        seen: bool array, rows: the strategy looks at this node.
        offered: bool array, rows: pods may be sent to this node.
        real: what is known of real load, and the time.
        met: returns, for each row, how much of preferred node affinities it meets.
        keeps_preferences: another strategy of the policy would move pods back to nodes that they
            prefer, so none goes to one that it prefers less.
    """

    stage: PlanBuilder
    profile: str
    strategy: str
    protects: Protects
    seen: Bools
    offered: Bools
    real: MeasuredLoad
    met: Callable[[tuple[Preference, ...]], Floats]
    keeps_preferences: bool = False

    def why(self, reason: str, improves: str = "") -> Why:
        """Return why this strategy moves a pod."""
        return Why(self.strategy, self.profile, reason, improves)

    def chosen(self, namespaces: Choice, selector: Selector = EVERYTHING) -> Bools:
        """Return, for each number, whether the strategy looks at the pod and its node."""
        chosen: Bools = self.stage.view.chosen(namespaces, selector)[self.stage.indexes]
        return chosen & self.seen[self.stage.planned.rows]

    def in_order(self, numbers: Rows) -> list[int]:
        """Return pods in the order in which they leave: the least important first."""
        found: list[int] = numbers.tolist()
        return sorted(found, key=self.stage.ranks.__getitem__)

    def send(
        self,
        number: int,
        accept: Bools,
        why: Why,
        score: Floats | None = None,
        *,
        waits: bool = False,
    ) -> bool:
        """Move a pod if nothing protects it; the arguments are those of `PlanBuilder.send`."""
        protection = self.protection(number)
        if protection:
            self.stage.keep(self.stage.pods[number], why, protection)
            return False
        accept = accept & self.offered
        each = self.stage.pods[number]
        if self.keeps_preferences and each.preferences:
            met = self.met(each.preferences)
            accept &= met >= met[self.stage.planned.rows[number]]
        return self.stage.send(number, accept, why, score, waits=waits)

    def recycle(self, each: ListedPod, why: Why) -> None:
        """Let a pod begin anew if nothing protects it, on another node or on its own."""
        number = self.stage.number_of(each)
        protection = self.protects(each) or ("it is being deleted" if each.pod.terminating else "")
        if number is None and not protection:
            self.stage.remove(each, why)
        elif number is None:
            self.stage.keep(each, why, protection)
        elif not self.send(number, self.offered, why) and not protection:
            self.stage.renew(number, self.offered, why)

    def protection(self, number: int) -> str:
        """Return what protects a pod; empty if nothing does."""
        each = self.stage.pods[number]
        return "it is being deleted" if each.pod.terminating else self.protects(each)
