"""PodDisruptionBudgets and the limits of a policy, as a plan spends them.

A plan counts as if no pod came back before its end: that it can be carried out does not depend on
how fast pods start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reserver.cluster.budgets import Budget, Budgets
from reserver.cluster.pod import Pod
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
        self._budgets = Budgets(budgets)

    def refusal(self, pod: Pod) -> str:
        """Return why a pod may not be evicted now; empty if it may."""
        return self._spent.refusal(pod) or self._budgets.refusal(pod)

    def left(self, pod: Pod) -> Iterator[tuple[object, int]]:
        """Yield all that counts an eviction of a pod, and how many more it allows."""
        yield from self._spent.left(pod)
        yield from self._budgets.left(pod)

    def spend(self, pod: Pod) -> None:
        """Count an eviction."""
        self._spent.count(pod)
        self._budgets.spend(pod)

    def give_back(self, pod: Pod) -> None:
        """Count an eviction no longer: it will not be made."""
        self._spent.count(pod, -1)
        self._budgets.spend(pod, -1)
