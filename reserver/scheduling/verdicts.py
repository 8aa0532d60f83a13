"""The answer to a Filter call, and the effects of decisions, for the I/O layer to carry out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Ref, Reservation


@dataclass(frozen=True, slots=True)
class Nominate:
    """Nominate a node for a pod, so that kube-scheduler at once asks about that node alone.

    Attributes:
        first: other pods of its PodGroup, and their nodes: nominated before the pod.
        last: others that are nominated after it, in this order.
    """

    pod: Pod
    node: str
    first: tuple[tuple[Pod, str], ...] = ()
    last: tuple[tuple[Pod, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """Have kube-scheduler try a pod again: other nodes may fit, or the same ones later.

    Attributes:
        attempts: how many attempts it takes to sample every node once.
        after_s: seconds to wait before.
    """

    pod: Pod
    attempts: int
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Activate:
    """Have kube-scheduler try a pod again that its own filters refused.

    A node is nominated for the pod and taken back, which counts as if a pod had been deleted there:
    all pods of its priority or less that lacked resources are tried with it. Any other change of
    the pod would leave it asleep (updatePodInSchedulingQueue in pkg/scheduler/eventhandlers.go).
    """

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class Recall:
    """Delete borrowers, so that an owner can have its seat.

    Attributes:
        pod: the owner.
        node: where its seat is.
        borrowers: the pods to delete; none where enough of them are on their way out.
    """

    pod: Pod
    node: str
    borrowers: tuple[Pod, ...]


Effect = Nominate | Retry | Activate | Recall


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
