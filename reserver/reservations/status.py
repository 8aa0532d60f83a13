"""The status of a reservation: how far it has come, and whether its node really has the room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Phase, Reservation

_NOT_HOLDING = {
    Phase.PENDING: "startsAt is still to come; nothing is held before",
    Phase.CLAIMED: "every slot is claimed; nothing is held any more",
    Phase.EXPIRED: "expiresAt has passed; nothing is held any more",
}


class Status(NamedTuple):
    """The status of one reservation at one instant.

    Attributes:
        phase: how far it has come.
        is_backed: it holds, and its node has the room.
        message: why it is not backed; empty when it is.
    """

    phase: Phase
    is_backed: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Shortages:
    """Where pods and holds together take more than there is, at one instant.

    Attributes:
        by_node: the nodes that are short, each with the resources it is short of; None for a node
            that does not exist. Only nodes where something is held are looked at.
        offered: the resources that some node offers; all are short of any other.
    """

    by_node: Mapping[str, frozenset[str] | None]
    offered: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Shortages:
        """Return the shortages of a cluster: allocatable − requested − held below zero."""
        rows = np.flatnonzero(snapshot.has_holds)
        free = snapshot.allocatable[rows] - snapshot.requested[rows] - snapshot.held[rows]
        is_short = free < 0
        exists = snapshot.exists[rows]
        resources = tuple(snapshot.columns)  # In the order of their columns.
        by_node: dict[str, frozenset[str] | None] = {}
        for index in np.flatnonzero(is_short.any(axis=1) | ~exists):
            short = (resources[column] for column in np.flatnonzero(is_short[index]))
            by_node[snapshot.name_of(rows[index])] = frozenset(short) if exists[index] else None
        return cls(by_node, frozenset(resources))

    def status(self, reservation: Reservation, phase: Phase) -> Status:
        """Return the status of a reservation that has come to a phase."""
        if phase is not Phase.ACTIVE:
            return Status(phase, is_backed=False, message=_NOT_HOLDING[phase])
        node = reservation.node
        short = self.by_node.get(node, frozenset())
        if short is None:
            message = f"node {node!r} does not exist; the hold takes effect once it does"
            return Status(phase, is_backed=False, message=message)
        lacking = [
            name
            for name in sorted(reservation.resources)
            if name in short or name not in self.offered
        ]
        if not lacking:
            return Status(phase, is_backed=True)
        message = (
            f"{node} has too little {', '.join(lacking)}: pods and holds take more than there is; "
            "the hold takes effect as room appears"
        )
        return Status(phase, is_backed=False, message=message)


def count_unbacked(snapshot: Snapshot, ledger: Ledger) -> int:
    """Return how many reservations hold capacity that their node does not have."""
    shortages = Shortages.of(snapshot)
    active = (reservation for reservation, phase in ledger if phase is Phase.ACTIVE)
    return sum(not shortages.status(reservation, Phase.ACTIVE).is_backed for reservation in active)
