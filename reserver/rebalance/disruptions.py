"""PodDisruptionBudgets and the limits of a policy, as a plan spends them.

The eviction API refuses a pod that several budgets are about, and one whose budget allows no more
disruptions (registry/core/pod/storage/eviction.go). A plan counts as if no pod came back before its
end: that it can be carried out does not depend on how fast pods start.
"""

from __future__ import annotations

from collections.abc import Iterable

from reserver.cluster.pod import Pod, PodName
from reserver.rebalance.cluster_state import Budget
from reserver.rebalance.limits import Spent
from reserver.rebalance.policy import NO_LIMITS, EvictionLimits


class Disruptions:
    """The evictions that budgets, and the limits of a policy, still allow.

    Attributes:
        limits: of the policy.
    """

    def __init__(self, budgets: Iterable[Budget] = (), limits: EvictionLimits = NO_LIMITS) -> None:
        """Begin with what the budgets and the limits say they allow."""
        self.limits = limits
        self._spent = Spent(limits)
        self._left: dict[PodName, int] = {}
        self._in: dict[str, list[Budget]] = {}
        self._about: dict[object, tuple[PodName, ...]] = {}
        for budget in budgets:
            self._left[budget.name] = budget.allowed
            self._in.setdefault(budget.name.namespace, []).append(budget)

    def refusal(self, pod: Pod) -> str:
        """Return why a pod may not be evicted now; empty if it may."""
        if limit := self._spent.refusal(pod):
            return limit
        names = self._names(pod)
        if len(names) > 1:
            return f"{len(names)} PodDisruptionBudgets select it; the eviction API allows one"
        if names and self._left[names[0]] <= 0:
            return f"the PodDisruptionBudget {names[0].name} allows no further disruption"
        return ""

    def spend(self, pod: Pod) -> None:
        """Count an eviction."""
        self._spent.count(pod)
        for name in self._names(pod):
            self._left[name] -= 1

    def give_back(self, pod: Pod) -> None:
        """Count an eviction no longer: it will not be made."""
        self._spent.count(pod, -1)
        for name in self._names(pod):
            self._left[name] += 1

    def _names(self, pod: Pod) -> tuple[PodName, ...]:
        """Return the budgets that select a pod."""
        budgets = self._in.get(pod.name.namespace)
        if not budgets:
            return ()
        key = (pod.name.namespace, frozenset(pod.labels.items()))
        if key not in self._about:
            found = (each.name for each in budgets if each.selector.matches(pod.labels))
            self._about[key] = tuple(found)
        return self._about[key]
