"""PodDisruptionBudgets, and the evictions that they still allow.

The eviction API refuses a pod that several budgets select, and a pod whose budget allows no further
disruption. A pod that does not run or is being deleted needs no budget, an unready one not always
(registry/core/pod/storage/eviction.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.pod import Pod, PodHealth, PodName, migrates


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A PodDisruptionBudget.

    Attributes:
        name: namespace and name.
        selector: selects pods of the budget's namespace.
        allowed: ``status.disruptionsAllowed``: evictions that it allows now.
        spares_unhealthy: unready pods may be evicted now: by AlwaysAllow, or because enough pods
            are healthy.
        problem: why it is not read, and the remedy; empty if it is (`unread`).
    """

    name: PodName
    selector: Selector
    allowed: int = 0
    spares_unhealthy: bool = False
    problem: str = ""


def unread(name: PodName, problem: str) -> Budget:
    """Return a budget that is not read: it allows no eviction of any pod of its namespace."""
    return Budget(name=name, selector=EVERYTHING, problem=problem)


class Budgets:
    """The evictions that PodDisruptionBudgets still allow."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        """Begin with the evictions that the budgets allow now."""
        self._left: dict[PodName, int] = {}
        self._in: dict[str, list[Budget]] = {}
        self._selecting: dict[object, tuple[PodName, ...]] = {}
        self._sparing: set[PodName] = set()
        self._problems: dict[PodName, str] = {}
        for budget in budgets:
            self.add(budget)

    def add(self, budget: Budget) -> None:
        """Add a budget, before the first question about a pod."""
        self._left[budget.name] = budget.allowed
        if budget.spares_unhealthy:
            self._sparing.add(budget.name)
        if budget.problem:
            self._problems[budget.name] = budget.problem
        self._in.setdefault(budget.name.namespace, []).append(budget)

    def refusal(self, pod: Pod) -> str:
        """Return the reason why the eviction API would refuse a pod now; empty if it would not.

        A budget that is not read may select the pod, so it refuses each pod of its namespace.
        """
        names = self._names(pod)
        for name in names if self._problems else ():
            if name in self._problems:
                return f"the PodDisruptionBudget {name.name} {self._problems[name]}"
        if len(names) > 1:
            return f"{len(names)} PodDisruptionBudgets select it; the eviction API allows one"
        if names and self._left[names[0]] <= 0:
            return f"the PodDisruptionBudget {names[0].name} allows no further disruption"
        return ""

    def left(self, pod: Pod) -> Iterator[tuple[PodName, int]]:
        """Yield the budgets that select a pod, each with the evictions that it still allows."""
        return ((name, self._left[name]) for name in self._names(pod))

    def spend(self, pod: Pod, times: int = 1) -> None:
        """Count an eviction; `times` -1 cancels one."""
        for name in self._names(pod):
            self._left[name] -= times

    def _names(self, pod: Pod) -> tuple[PodName, ...]:
        """Return the budgets that protect a pod; none if it moves by live migration."""
        is_over = pod.terminating or pod.health is PodHealth.NOT_RUNNING
        if is_over or migrates(pod.controller):
            return ()
        budgets = self._in.get(pod.name.namespace)
        if not budgets:
            return ()
        key = (pod.name.namespace, frozenset(pod.labels.items()))
        if key not in self._selecting:
            found = (each.name for each in budgets if each.selector.matches(pod.labels))
            self._selecting[key] = tuple(found)
        names = self._selecting[key]
        is_spared = (
            pod.health is PodHealth.UNREADY and len(names) == 1 and names[0] in self._sparing
        )
        return () if is_spared else names
