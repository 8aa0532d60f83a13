"""Nodes where kube-scheduler counts pods that Bind may still refuse.

kube-scheduler counts a pod on its node from choosing the node until it hears that the binding
failed. A seat that it refuses for lack of room meanwhile is not lost.
"""

from __future__ import annotations

FORGETTING_S = 1.0
"""How long kube-scheduler may go on counting a pod whose binding failed, in seconds. It hears of it
within milliseconds; but the pod that it is just trying has a snapshot from before."""


class InFlightBinds:
    """The nodes where kube-scheduler counts pods that may not get there."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        self._failed_at: dict[str, float] = {}

    def asked(self, node: str) -> None:
        """Count a pod as undecided from its Bind call on, until `decided` is called."""
        self._asked[node] = self._asked.get(node, 0) + 1

    def decided(self, node: str) -> None:
        """Count it no longer."""
        self._asked[node] -= 1
        if not self._asked[node]:
            del self._asked[node]

    def failed(self, node: str, now: float) -> None:
        """Note that a binding was refused or failed at `now` (unix seconds)."""
        self._failed_at.pop(node, None)
        self._failed_at[node] = now
        while abs(now - next(iter(self._failed_at.values()))) >= FORGETTING_S:
            del self._failed_at[next(iter(self._failed_at))]

    def drop(self, node: str) -> None:
        """Forget a node."""
        self._failed_at.pop(node, None)

    def has(self, node: str, now: float) -> bool:
        """Return whether there may be such a pod on a node at `now` (unix seconds)."""
        failed_at = self._failed_at.get(node, float("-inf"))
        return node in self._asked or abs(now - failed_at) < FORGETTING_S
