"""Reads PodDisruptionBudgets."""

from __future__ import annotations

from reserver.cluster.budgets import Budget
from reserver.cluster.pod import PodName
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import Metadata, WireStruct
from reserver.k8s.objects.selectors import LabelSelector, label_selector


class _BudgetSpec(WireStruct, frozen=True):
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _BudgetStatus(WireStruct, frozen=True):
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0


class BudgetObject(WireStruct, frozen=True):
    """A PodDisruptionBudget on the wire."""

    metadata: Metadata = Metadata()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()

    def value(self) -> Budget:
        """Return the budget as a value for decisions.

        Raises:
            InvalidInput: its selector is malformed; the error carries the path.
        """
        policy, status = self.spec.unhealthy_pod_eviction_policy, self.status
        has_enough = 0 < status.desired_healthy <= status.current_healthy
        return Budget(
            name=PodName(self.metadata.namespace, self.metadata.name),
            selector=label_selector(self.spec.selector),
            allowed=status.disruptions_allowed,
            spares_unhealthy=policy == "AlwaysAllow"
            or (policy in {None, "IfHealthyBudget"} and has_enough),
        )
