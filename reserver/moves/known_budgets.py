"""Caches the PodDisruptionBudgets, up to a bound for each namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from reserver.cluster.budgets import Budget, unread
from reserver.cluster.pod import PodName
from reserver.k8s.objects.budgets import MOST_BUDGETS, TOO_LARGE, TOO_MANY, BudgetObject
from reserver.k8s.watch.object_view import ObjectView


class KnownBudgets:
    """All PodDisruptionBudgets, by name; those that are not read allow no eviction."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Begin without budgets; `changed` is called when one has changed."""
        self._changed = changed
        self._known: dict[PodName, Budget] = {}
        self._read_in: Counter[str] = Counter()

    def view(self) -> ObjectView[BudgetObject]:
        """Return the view that updates the budgets from the watch."""
        return ObjectView(
            BudgetObject,
            seen=lambda item, _: self.put(item.value()),
            gone=lambda key: self.drop(PodName(*key)),
            known=lambda: self._known,
            broken=lambda key, _: self.put(unread(PodName(*key), TOO_LARGE)),
        )

    def all(self) -> tuple[Budget, ...]:
        """Return all budgets."""
        return tuple(self._known.values())

    def put(self, budget: Budget) -> None:
        """Store the present state of a budget, unless too many of its namespace are read."""
        before, namespace = self._known.get(budget.name), budget.name.namespace
        was_read = before is not None and not before.problem
        if not (was_read or budget.problem) and self._read_in[namespace] >= MOST_BUDGETS:
            budget = unread(budget.name, TOO_MANY)
        if budget != before:
            self._known[budget.name] = budget
            self._count(namespace, (not budget.problem) - was_read)
            self._changed()

    def drop(self, name: PodName) -> None:
        """Remove a deleted budget."""
        budget = self._known.pop(name, None)
        if budget is not None:
            self._count(name.namespace, -(not budget.problem))
            self._changed()

    def _count(self, namespace: str, more: int) -> None:
        self._read_in[namespace] += more
        if not self._read_in[namespace]:
            del self._read_in[namespace]
