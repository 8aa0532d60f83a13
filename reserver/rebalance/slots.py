"""The slots of reservations that a plan makes room for before any pod exists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from reserver.cluster.constraints import Constraints, NodeTerm
from reserver.cluster.labels import EVERYTHING, equals
from reserver.cluster.pod import Pod, PodName
from reserver.reservations.reservation import Reservation
from reserver.scheduling.placement import slot_pod


class Slots(NamedTuple):
    """The slots of a reservation that nobody has created yet.

    Attributes:
        pod: what each of them counts as, of the reservation's name.
        number: how many there are.
    """

    pod: Pod
    number: int

    @classmethod
    def of(cls, reservation: Reservation, name: str) -> Slots:
        """Return the slots of a reservation that is called `name`."""
        pod = slot_pod(reservation)
        if reservation.node:
            term = NodeTerm(EVERYTHING, equals({"metadata.name": reservation.node}))
            pod = replace(pod, constraints=Constraints(node_terms=(term,)))
        named = replace(pod, name=PodName(pod.name.namespace, name))
        return cls(named, reservation.slots)

    def pods(self) -> Iterator[Pod]:
        """Yield each as a pod without a node: of several the name says which."""
        namespace, name = self.pod.name
        for index in range(self.number):
            home = PodName(namespace, f"{name}#{index}" if self.number > 1 else name)
            yield replace(self.pod, name=home, uid=f"wanted {home}")
