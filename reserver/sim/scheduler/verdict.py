"""How an attempt ends without a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping


class NotSchedulableError(Exception):
    """No node can take the pod (`framework.FitError`); the message is kube-scheduler's.

    Attributes:
        by_extender: whether an extender took nodes away.
    """

    def __init__(
        self, nodes: int, reasons: Mapping[str, Iterable[str]], *, by_extender: bool
    ) -> None:
        super().__init__(fit_message(nodes, reasons))
        self.by_extender = by_extender


class AttemptFailedError(Exception):
    """The attempt broke down; nothing is known of the nodes.

    Attributes:
        reason: of the pod's condition: SchedulerError or Unschedulable.
    """

    def __init__(self, message: str, reason: str = "SchedulerError") -> None:
        super().__init__(message)
        self.reason = reason


def fit_message(nodes: int, reasons: Mapping[str, Iterable[str]]) -> str:
    """Word a refusal as kube-scheduler does.

    For example: `0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.`

    Args:
        nodes: how many there are; those that were not looked at have no reasons.
        reasons: by node.
    """
    counts = Counter(reason for of_node in reasons.values() for reason in of_node)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    message = f"0/{nodes} nodes are available:"
    return f"{message} {listed}." if listed else message
