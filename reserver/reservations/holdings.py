"""What is held on each node, and in which order those stand that hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Ref, Reservation, Written

UNSEEN = -1
"""In place of a resourceVersion: of a claim whose binding no watch has shown."""


@dataclass(slots=True)
class Entry:
    """A reservation, and what became of it so far."""

    reservation: Reservation
    since: Written
    """When its place in the row of those that hold capacity on its node was taken."""
    written: Written
    claimants: dict[str, int]
    """The pods that took a slot, by UID, each with a resourceVersion at which it had it (`UNSEEN`
    while its binding is); one mapping for all entries that have the same identity."""
    order: int
    """Later ones are greater."""
    holding: dict[str, int] = field(default_factory=dict)
    """What the entry adds to its node's row at this moment."""


class Holdings:
    """What is held on each node; written into the snapshot's matrix as it changes."""

    def __init__(self, snapshot: Snapshot, freed: Callable[[str], None]) -> None:
        """Begin with nothing held; `freed` is told of each node on which less is held."""
        self._snapshot = snapshot
        self._freed = freed
        self._by_node: dict[str, dict[Ref, Entry]] = {}
        self._yielding: dict[str, dict[Ref, Entry]] = {}
        self._held: dict[str, dict[str, int]] = {}

    def on(self, node: str) -> Mapping[str, int]:
        """Return what is held on a node in all, exactly."""
        return self._held.get(node, {})

    def reservations_on(self, node: str) -> Iterator[Reservation]:
        """Yield the reservations that hold capacity on a node now, oldest first."""
        return (entry.reservation for entry in self._by_node.get(node, {}).values())

    def after(self, node: str, seats: Iterable[Entry]) -> dict[str, int]:
        """Return what is held on a node by reservations that stand behind all of these.

        Those were certainly written after them, or they yield to priority and none of these does.
        """
        seats = tuple(seats)
        last = max(seat.since.last for seat in seats)
        are_firm = all(seat.reservation.yields_above is None for seat in seats)
        totals: dict[str, int] = {}
        for entry in self._by_node.get(node, {}).values():
            yields = entry.reservation.yields_above is not None
            # Of one kind the order counts; those that yield stand behind all that do not.
            is_behind = entry.since.first > last if yields != are_firm else are_firm
            if is_behind:
                for resource, amount in entry.holding.items():
                    totals[resource] = totals.get(resource, 0) + amount
        return totals

    def yielding(self, pod: Pod, nodes: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return what is held on some nodes, for others, that a pod's priority may take."""
        if not self._yielding:
            return {}
        yielding: dict[str, dict[str, int]] = {}
        for node in self._yielding.keys() & nodes:
            totals: dict[str, int] = {}
            for entry in self._yielding[node].values():
                reservation = entry.reservation
                if reservation.yields_to(pod.priority) and not reservation.is_owned_by(pod):
                    for resource, amount in entry.holding.items():
                        totals[resource] = totals.get(resource, 0) + amount
            if totals:
                yielding[node] = totals
        return yielding

    def hold(self, entry: Entry, holding: dict[str, int]) -> None:
        """Have an entry hold this, and nothing else."""
        if holding == entry.holding:
            return
        node = entry.reservation.node
        totals = self._held.setdefault(node, {})
        is_less = any(amount > holding.get(name, 0) for name, amount in entry.holding.items())
        for name, amount in entry.holding.items():
            totals[name] -= amount
        for name, amount in holding.items():
            totals[name] = totals.get(name, 0) + amount
        entry.holding = holding
        for name in [name for name, amount in totals.items() if not amount]:
            del totals[name]
        _put(self._by_node, node, entry)
        if entry.reservation.yields_above is not None:
            _put(self._yielding, node, entry)
        self._snapshot.set_held(node, dict(totals))
        if not totals:
            del self._held[node]
        if is_less:
            self._freed(node)


def _put(index: dict[str, dict[Ref, Entry]], node: str, entry: Entry) -> None:
    """Have an entry in an index by node while it holds something."""
    if entry.holding:
        index.setdefault(node, {})[entry.reservation.ref] = entry
    elif node in index:
        index[node].pop(entry.reservation.ref, None)
        if not index[node]:
            del index[node]
