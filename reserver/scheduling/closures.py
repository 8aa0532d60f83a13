"""Nodes that features close for holds for some time, and the reasons.

Cordons and taints exclude nodes now. A closure also excludes a node ahead of time: a hold that
would last into the closure is placed elsewhere.
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
        why: the reason, in a few constant words that follow "node(s)".
        since: its start, unix seconds.
        until: its end, unix seconds.
        is_firm: no hold is placed there; else holds are placed there only without another place.
        is_vacated: placed holds move to other nodes.
    """

    why: str
    since: float = 0.0
    until: float = inf
    is_firm: bool = True
    is_vacated: bool = False

    def meets(self, reservation: Reservation) -> bool:
        """Return whether a reservation would hold during the closure."""
        starts_at, expires_at = reservation.starts_at, reservation.expires_at
        begins = starts_at is None or starts_at < self.until
        return begins and (expires_at is None or expires_at > self.since)


NodesByClosure = Mapping[Closure, Nodes]
"""The nodes of each closure; many nodes share one closure, so there are few to judge."""


class Closures:
    """The closures of all nodes."""

    def __init__(self) -> None:
        """Begin with every node open."""
        self._nodes: NodesByClosure = {}
        self._vacated = NO_NODES

    def set(self, nodes: NodesByClosure) -> Nodes:
        """Replace all closures; return the nodes whose closures have changed."""
        before, self._nodes = self._nodes, nodes
        self._vacated = NO_NODES.union(*(nodes[each] for each in nodes if each.is_vacated))
        both = before.keys() | nodes.keys()
        changed = (before.get(each, NO_NODES) ^ nodes.get(each, NO_NODES) for each in both)
        return NO_NODES.union(*changed)

    @property
    def vacated(self) -> Nodes:
        """The nodes that placed holds leave."""
        return self._vacated

    def tiers(self, reservation: Reservation) -> Iterator[Nodes]:
        """Yield the nodes to avoid: first all closed nodes, then only the firmly closed ones."""
        met = tuple(self._met(reservation))
        every = NO_NODES.union(*(nodes for _, nodes in met))
        firm = NO_NODES.union(*(nodes for closure, nodes in met if closure.is_firm))
        yield every
        if firm != every:
            yield firm

    def leaving(self, reservation: Reservation) -> Nodes:
        """Return the nodes that a placed reservation has to leave; a seat stays with its move."""
        if reservation.node or reservation.is_seat or not self._vacated:
            return NO_NODES
        return self._vacated.intersection(part.node for part in reservation.placed)

    def refusals(self, reservation: Reservation, snapshot: Snapshot) -> dict[str, Bools]:
        """Return the reasons of closed nodes for a reservation, with the nodes' rows."""
        by_why: dict[str, Nodes] = {}
        for closure, nodes in self._met(reservation):
            if closure.is_firm:
                why = f"node(s) {closure.why}"
                by_why[why] = nodes | by_why.get(why, NO_NODES)
        exists = snapshot.exists
        return {why: exists & ~without(nodes, snapshot) for why, nodes in by_why.items()}

    def _met(self, reservation: Reservation) -> Iterator[tuple[Closure, Nodes]]:
        for closure, nodes in self._nodes.items():
            if closure.meets(reservation):
                yield closure, nodes


def without(avoided: Iterable[str], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether its node exists and is not to be avoided."""
    open_: Bools = snapshot.exists.copy()
    rows = snapshot.rows([node for node in avoided if snapshot.has_node(node)])
    open_[rows] = False
    return open_
