"""Nodes that are closed for holds for some time, as features know it, and why.

A cordon and taints say where a pod may not go now. A closure also says what is to come: a hold that
would last into it is placed elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from reserver.cluster.categorical import Bools
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Reservation

Nodes = frozenset[str]

NO_NODES: Nodes = frozenset()


class Closure(NamedTuple):
    """A time for which a node is closed for holds.

    Attributes:
        why: a few constant words, which follow "node(s)".
        since: when it begins, unix seconds.
        until: when it ends, unix seconds.
        is_firm: no hold is placed there; else only while there is another place.
        is_vacated: what is placed there already is placed anew elsewhere.
    """

    why: str
    since: float = 0.0
    until: float = inf
    is_firm: bool = True
    is_vacated: bool = False

    def meets(self, reservation: Reservation) -> bool:
        """Return whether a reservation would hold while it lasts."""
        starts_at, expires_at = reservation.starts_at, reservation.expires_at
        begins = starts_at is None or starts_at < self.until
        return begins and (expires_at is None or expires_at > self.since)


class Closures:
    """The closures of all nodes."""

    def __init__(self) -> None:
        """Begin with every node open."""
        self._by_node: Mapping[str, tuple[Closure, ...]] = {}
        self._vacated = NO_NODES

    def set(self, by_node: Mapping[str, tuple[Closure, ...]]) -> Nodes:
        """Take all closures as they are now; return the nodes of which they have changed."""
        before, self._by_node = self._by_node, by_node
        self._vacated = frozenset(
            node for node, closures in by_node.items() if any(each.is_vacated for each in closures)
        )
        both = before.keys() | by_node.keys()
        return frozenset(node for node in both if before.get(node) != by_node.get(node))

    @property
    def vacated(self) -> Nodes:
        """The nodes that placed holds leave."""
        return self._vacated

    def tiers(self, reservation: Reservation) -> Iterator[Nodes]:
        """Yield the nodes to avoid: first all that are closed for a reservation, then the firm."""
        if not self._by_node:
            yield NO_NODES
            return
        met = tuple(self._met(reservation))
        every = frozenset(node for node, _ in met)
        firm = frozenset(node for node, closure in met if closure.is_firm)
        yield every
        if firm != every:
            yield firm

    def leaving(self, reservation: Reservation) -> Nodes:
        """Return the nodes that a placed reservation is to leave; a seat stays with its move."""
        if reservation.node or reservation.is_seat or not self._vacated:
            return NO_NODES
        return self._vacated.intersection(part.node for part in reservation.placed)

    def refusals(self, reservation: Reservation, snapshot: Snapshot) -> dict[str, Bools]:
        """Return why nodes are closed for a reservation, with their rows."""
        by_why: dict[str, set[str]] = {}
        for node, closure in self._met(reservation):
            if closure.is_firm:
                by_why.setdefault(f"node(s) {closure.why}", set()).add(node)
        exists = snapshot.exists
        return {why: exists & ~without(nodes, snapshot) for why, nodes in by_why.items()}

    def _met(self, reservation: Reservation) -> Iterator[tuple[str, Closure]]:
        for node, closures in self._by_node.items():
            for closure in closures:
                if closure.meets(reservation):
                    yield node, closure


def without(avoided: Iterable[str], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether its node is none of those to avoid."""
    open_: Bools = snapshot.exists.copy()
    rows = snapshot.rows([node for node in avoided if snapshot.has_node(node)])
    open_[rows] = False
    return open_
