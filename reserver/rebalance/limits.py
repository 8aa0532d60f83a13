"""Eviction limits of a cycle, and PodDisruptionBudgets, as a plan spends them.

Order and arithmetic of the limits follow ``EvictPod`` in pkg/descheduler/evictions. A plan assumes
that no evicted pod is replaced before the plan ends, so it does not depend on how fast pods start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from reserver.cluster.budgets import Budget, Budgets
from reserver.cluster.pod import Pod
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.policy import NO_LIMITS, EvictionLimits


class Reached(StrEnum):
    """A limit that keeps a pod from being evicted; the words of upstream's metrics."""

    TOTAL = "maximum number of evicted pods per a descheduling cycle reached"
    NODE = "maximum number of evicted pods per node reached"
    NAMESPACE = "maximum number of evicted pods per namespace reached"


class Spent:
    """The evictions of one cycle so far, over all profiles."""

    def __init__(self, limits: EvictionLimits) -> None:
        """Begin a cycle."""
        self._limits = limits
        self._total = 0
        self._by_node: Counter[str] = Counter()
        self._by_namespace: Counter[str] = Counter()

    def refusal(self, pod: ListedPod | Pod) -> str:
        """Return the limit that one more pod would exceed, for people; empty if none."""
        limits = self._limits
        match self.reached(pod):
            case Reached.TOTAL:
                return f"maxNoOfPodsToEvictTotal: {limits.total} are moved already"
            case Reached.NODE:
                return f"maxNoOfPodsToEvictPerNode: {limits.per_node} leave {pod.node} already"
            case Reached.NAMESPACE:
                most, space = limits.per_namespace, pod.name.namespace
                return f"maxNoOfPodsToEvictPerNamespace: {most} of {space} move already"
            case None:
                return ""

    def reached(self, pod: ListedPod | Pod) -> Reached | None:
        """Return the first limit that one more pod would exceed; None if none."""
        limits = self._limits
        if _is_spent(self._total, limits.total):
            return Reached.TOTAL
        if pod.node and _is_spent(self._by_node[pod.node], limits.per_node):
            return Reached.NODE
        if _is_spent(self._by_namespace[pod.name.namespace], limits.per_namespace):
            return Reached.NAMESPACE
        return None

    def left(self, pod: ListedPod | Pod) -> Iterator[tuple[object, int]]:
        """Yield the limits that an eviction of a pod counts against, and what each still allows."""
        limits, space = self._limits, pod.name.namespace
        if limits.total is not None:
            yield Reached.TOTAL, limits.total - self._total
        if limits.per_node is not None:
            yield (Reached.NODE, pod.node), limits.per_node - self._by_node[pod.node]
        if limits.per_namespace is not None:
            yield (Reached.NAMESPACE, space), limits.per_namespace - self._by_namespace[space]

    def allows(self, pods: Sequence[ListedPod | Pod]) -> bool:
        """Return whether the limits allow all of these evictions together."""
        allowed = 0
        while allowed < len(pods) and self.reached(pods[allowed]) is None:
            self.count(pods[allowed])
            allowed += 1
        for pod in pods[:allowed]:
            self.count(pod, -1)
        return allowed == len(pods)

    def count(self, pod: ListedPod | Pod, times: int = 1) -> None:
        """Count a pod that is evicted; -1 takes it back."""
        self._total += times
        self._by_node[pod.node] += times
        self._by_namespace[pod.name.namespace] += times


def _is_spent(spent: int, limit: int | None) -> bool:
    return limit is not None and spent >= limit


class Disruptions:
    """The evictions that budgets, and the limits of a policy, still allow.

    Attributes:
        limits: of the policy.
    """

    def __init__(self, budgets: Iterable[Budget] = (), limits: EvictionLimits = NO_LIMITS) -> None:
        """Start with the disruptions that budgets and limits allow."""
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
