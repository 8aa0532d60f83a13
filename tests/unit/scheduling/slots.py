"""Reservations without a node, and the slots that a placement gives them."""

from collections.abc import Iterable

from reserver.cluster.constraints import PodTerm
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.placement import Placed
from tests.builders import NAMESPACE, node, place, reservation, rule, state_of

APART = PodTerm(equals({"app": "web"}), "kubernetes.io/hostname", frozenset({NAMESPACE}))
WEB = rule(app="web")


def wanted(slots: int = 1, **more: object) -> Reservation:
    return reservation("r", node="", slots=slots, **({"cpu": "2"} | more))  # type: ignore[arg-type]


def go(reservation: Reservation, *things: Node | Pod | Reservation) -> dict[str, int]:
    return dict(placed(reservation, *things).parts)


def placed(reservation: Reservation, *things: Node | Pod | Reservation) -> Placed:
    state = state_of(*things)
    outcome = place(reservation, reservation.slots, state)
    assert bool(outcome.parts) is not bool(outcome.why)
    return outcome


def workers(**cpu: str) -> Iterable[Node]:
    return (node(name, cpu=amount, memory="8Gi") for name, amount in cpu.items())


THREE = tuple(workers(a="8", b="8", c="8"))
