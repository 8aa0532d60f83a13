"""What every judge needs: the stage, the profile, and which pods and nodes it may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.labels import Selector
from reserver.rebalance.arguments import Choice
from reserver.rebalance.inventory import ListedPod, Preference
from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.real import RealLoad
from reserver.rebalance.scene import Why
from reserver.rebalance.stage import Floats, Stage
from reserver.rebalance.view import View

Protects = Callable[[ListedPod], str]
"""Returns what protects a pod from eviction; empty if nothing does."""

_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}
_LAST = -(2**63)


class Sight(NamedTuple):
    """The inventory as upstream's strategies look at it."""

    view: View
    fit: NodeFit


@dataclass(frozen=True, eq=False, kw_only=True)
class Cycle:
    """One strategy's turn.

    Attributes:
        stage: what was moved so far.
        profile: the name of the profile.
        strategy: the name of the plugin.
        protects: what protects a pod from this profile's evictor.
        sight: the inventory as it was at first, as upstream's strategies look at it.
        seen: bool array, rows: the strategy looks at this node.
        offered: bool array, rows: pods may be sent to this node.
        real: what is known of real load, and the time.
        weights: how much of preferred node affinities each row meets, as far as anybody has asked.
        keeps_preferences: another strategy of the policy would move pods back to nodes that they
            prefer, so none goes to one that it prefers less.
    """

    stage: Stage
    profile: str
    strategy: str
    protects: Protects
    sight: Sight
    seen: Bools
    offered: Bools
    real: RealLoad
    weights: dict[tuple[Preference, ...], Floats]
    keeps_preferences: bool = False

    def why(self, reason: str, improves: str = "") -> Why:
        """Return why this strategy moves a pod."""
        return Why(self.strategy, self.profile, reason, improves)

    def pods(
        self, namespaces: Choice, selector: Selector, is_meant: Callable[[ListedPod], bool]
    ) -> list[int]:
        """Return the pods on nodes that the strategy looks at, the least important first."""
        seen: list[bool] = self.seen[self.stage.scene.board.rows].tolist()
        found = (
            number
            for number, each in enumerate(self.stage.pods)
            if seen[number]
            and is_meant(each)
            and namespaces.has(each.name.namespace)
            and selector.matches(each.pod.labels)
        )
        return self.in_order(found)

    def in_order(self, numbers: Iterable[int]) -> list[int]:
        """Return pods in the order in which they leave: the least important first."""
        return sorted(map(int, numbers), key=self._importance)

    def send(
        self,
        number: int,
        accept: Bools,
        why: Why,
        score: Floats | None = None,
        *,
        waits: bool = False,
    ) -> bool:
        """Move a pod if nothing protects it; the arguments are those of `Stage.send`."""
        protection = self.protection(number)
        if protection:
            self.stage.keep(self.stage.pods[number], why, protection)
            return False
        accept = accept & self.offered
        each = self.stage.pods[number]
        if self.keeps_preferences and each.preferences:
            met = self.met(each)
            accept &= met >= met[self.stage.scene.board.rows[number]]
        return self.stage.send(number, accept, why, score, waits=waits)

    def met(self, each: ListedPod) -> Floats:
        """Return, for each row, how much of a pod's preferred node affinity it meets."""
        known = self.weights.get(each.preferences)
        if known is None:
            known = np.zeros(len(self.seen))
            topology = self.stage.scene.board.snapshot.topology
            for preference in each.preferences:
                known += preference.weight * topology.meeting([preference.term])
            self.weights[each.preferences] = known
        return known

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

    def _importance(self, number: int) -> tuple[int, int, str, str]:
        each = self.stage.pods[number]
        priority = _LAST if each.priority is None else each.priority
        return priority, _QOS.get(each.qos, 1), each.name.namespace, each.name.name
