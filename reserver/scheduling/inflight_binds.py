"""Bindings in flight: pods that are assumed on nodes, and nodes where Bind may still refuse one.

A pod is assumed from the decision of Bind until the watch shows its binding. kube-scheduler counts
it on its node from choosing the node until it hears that the binding failed. A seat that it refuses
for lack of room meanwhile is not lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger


@dataclass(slots=True)
class AssumedPod:
    """A binding that was decided and that the watch has yet to show.

    Attributes:
        pod: the pod as it was when the binding was decided.
        node: where it goes.
        claims: the identities of the reservations that it claims.
        is_written: the API server has accepted the binding.
        is_gone: the pod was deleted, and its claims are taken back until the binding is answered.
    """

    pod: Pod
    node: str
    claims: tuple[str, ...] = ()
    is_written: bool = False
    is_gone: bool = False


def slots_of(pod: Pod, node: str, claims: tuple[str, ...], ledger: Ledger) -> Mapping[str, int]:
    """Return what the slots hold on a node that a pod claims."""
    slots: Counter[str] = Counter()
    for seat in ledger.seats(pod) if claims else ():
        if seat.node == node and seat.identity in claims:
            slots.update(seat.resources)
    return slots


def with_rest(pod: Pod, node: str, slots: Mapping[str, int], snapshot: Snapshot) -> Pod:
    """Return a pod that takes, beside what it requests, what is free now of its slots."""
    requests = dict(pod.requests)
    row = snapshot.row(node)
    if row is None:
        return pod
    free = snapshot.allocatable[row] - snapshot.requested[row] - snapshot.held[row]
    for name, amount in slots.items():
        column = snapshot.columns.get(name)
        if column is not None:
            rest = min(amount - requests.get(name, 0), int(free[column]))
            requests[name] = requests.get(name, 0) + max(0, rest)
    return replace(pod, requests=requests)


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
