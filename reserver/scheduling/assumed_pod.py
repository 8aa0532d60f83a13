"""A binding that was decided, until the watch shows it, and what its pod takes meanwhile."""

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
