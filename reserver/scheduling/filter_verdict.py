"""The answer to a Filter call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.effects import Effect


class WaitsFor(Enum):
    """The thing that a pod waits for if it may have none of its nodes."""

    ROOM = auto()
    """Only what is held for others keeps it out."""

    SEAT = auto()
    """A reservation that it owns has no place yet, or none that it can have now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterVerdict:
    """The answer to a Filter call.

    Attributes:
        nodes: the nodes that the pod may have.
        refused: when there are none, the reason for each node of the call.
        effects: what to do once the answer is on its way.
        waits_for: what keeps the pod from these nodes; None if no reservations do.
        in_the_way: the reservations that do, when the nodes are refused for few of them.
        lost_seat: the last seat that Reserver steered to and kube-scheduler refused.
        recalled: the node of a seat that borrowers take, and where nothing more is to be lent.
    """

    nodes: Sequence[str] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    waits_for: WaitsFor | None = None
    in_the_way: tuple[Ref, ...] = ()
    lost_seat: Reservation | None = None
    recalled: str = ""
