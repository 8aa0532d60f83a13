"""Reads PodDisruptionBudgets."""

from __future__ import annotations

from reserver.cluster.budgets import Budget, unread
from reserver.cluster.pod import PodName
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import Metadata, WireStruct
from reserver.k8s.objects.selectors import LabelSelector, label_selector

MOST_TERMS = 16
"""Most requirements in the selector of a PodDisruptionBudget: each costs each move that begins."""

MOST_VALUES = 64
"""Most values of all these requirements; a label has one."""

MOST_BUDGETS = 1_000
"""Most PodDisruptionBudgets of one namespace that are read."""

_BYTES = 65_536

_NO_EVICTION = "is not read, and so no pod of its namespace is evicted"

TOO_LARGE = (
    f"{_NO_EVICTION}; keep it under {_BYTES} bytes,"
    f" and its selector under {MOST_TERMS} requirements and {MOST_VALUES} values"
)
"""The problem of a budget that is beyond a bound, or malformed."""

TOO_MANY = (
    f"{_NO_EVICTION}; {MOST_BUDGETS:,} of a namespace are read: delete some, and write it again"
)
"""The problem of a budget beyond `MOST_BUDGETS`."""


class _BudgetSpec(WireStruct, frozen=True):
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _BudgetStatus(WireStruct, frozen=True):
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0


class BudgetObject(WireStruct, frozen=True):
    """A PodDisruptionBudget on the wire."""

    MOST_BYTES = _BYTES

    metadata: Metadata = Metadata()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()

    def value(self) -> Budget:
        """Return the budget as a value for decisions; one beyond a bound allows no eviction."""
        name = PodName(self.metadata.namespace, self.metadata.name)
        if _is_beyond(self.spec.selector):
            return unread(name, TOO_LARGE)
        policy, status = self.spec.unhealthy_pod_eviction_policy, self.status
        has_enough = 0 < status.desired_healthy <= status.current_healthy
        return Budget(
            name=name,
            selector=label_selector(self.spec.selector),
            allowed=status.disruptions_allowed,
            spares_unhealthy=policy == "AlwaysAllow"
            or (policy in {None, "IfHealthyBudget"} and has_enough),
        )


def _is_beyond(selector: LabelSelector | None) -> bool:
    """Return whether a selector has more requirements or values than are read."""
    if selector is None:
        return False
    labels, terms = len(selector.match_labels or ()), selector.match_expressions or ()
    values = labels + sum(len(term.values or ()) for term in terms)
    return labels + len(terms) > MOST_TERMS or values > MOST_VALUES
