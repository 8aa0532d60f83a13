"""Which reservations a client means."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.errors import InvalidInput
from reserver.v1 import reservation_pb2 as pb


@dataclass(frozen=True, slots=True)
class Selection:
    """Which reservations a client means; what is empty means any.

    Attributes:
        node: on which they hold.
        owner: namespace and name of a pod that they name.
        namespace: of some owner.
        phases: that they are in.
    """

    node: str
    owner: tuple[str, str] | None
    namespace: str
    phases: frozenset[int]

    @classmethod
    def of(cls, wanted: pb.ReservationFilter) -> Selection:
        """Return what a filter of the API means.

        Raises:
            InvalidInput: the owner is not of the form NAMESPACE/POD.
        """
        owner = None
        if wanted.owner:
            namespace, slash, name = wanted.owner.partition("/")
            if not (namespace and slash and name):
                problem = f"{wanted.owner!r} is not a pod"
                raise InvalidInput("filter.owner", problem, "write NAMESPACE/POD")
            owner = namespace, name
        phases = frozenset(wanted.phases)
        return cls(wanted.node, owner, wanted.owner_namespace, phases)

    def covers(self, reservation: pb.Reservation) -> bool:
        """Return whether a reservation is meant."""
        if self.node and reservation.spec.node != self.node:
            return False
        if self.phases and reservation.status.phase not in self.phases:
            return False
        if not (self.owner or self.namespace):
            return True
        home = reservation.id.partition("/")[0]
        owners = [(_namespace(owner) or home, owner.pod.name) for owner in reservation.spec.owners]
        if self.owner and self.owner not in owners:
            return False
        return not self.namespace or any(namespace == self.namespace for namespace, _ in owners)


def _namespace(owner: pb.Owner) -> str:
    return owner.pod.namespace or owner.controller.namespace or owner.selector.namespace
