"""The answer to a Filter call, and the effects of decisions, which the I/O layer executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Ref, Reservation


@dataclass(frozen=True, slots=True)
class Nominate:
    """Nominate a node for a pod, so that kube-scheduler retries it at once with that node alone.

    Attributes:
        first: pods of its PodGroup to nominate before it, with their nodes.
        last: pods to nominate after it, in this order, with their nodes.
    """

    pod: Pod
    node: str
    first: tuple[tuple[Pod, str], ...] = ()
    last: tuple[tuple[Pod, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """Have kube-scheduler retry a pod: other nodes may fit, or the same ones later.

    Attributes:
        attempts: the number of attempts that sample every node once.
        after_s: seconds to wait before.
    """

    pod: Pod
    attempts: int
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Activate:
    """Have kube-scheduler retry a pod that its own filters refused.

    A nomination is set and removed, which kube-scheduler treats as a pod's deletion on that node:
    it retries all pods of the same or lower priority that lacked resources. Any other change of the
    pod would not wake it (updatePodInSchedulingQueue in pkg/scheduler/eventhandlers.go).
    """

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class Recall:
    """Delete borrowers, so that an owner can use its seat.

    Attributes:
        pod: the owner.
        node: the node of its seat.
        borrowers: the pods to delete; empty if enough of them are ending already.
    """

    pod: Pod
    node: str
    borrowers: tuple[Pod, ...]


Effect = Nominate | Retry | Activate | Recall


class WaitsFor(Enum):
    """The need of a pod that may use none of the named nodes."""

    ROOM = auto()
    """Only others' holds keep it out."""

    SEAT = auto()
    """A reservation that it owns has no place yet, or no usable one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterVerdict:
    """The answer to a Filter call.

    Attributes:
        nodes: the nodes that the pod may use.
        refused: the reason for each node of the call, if `nodes` is empty.
        effects: the effects to execute once the response is on its way.
        waits_for: the need of the pod; None if no reservation keeps it out.
        in_the_way: the reservations that keep it out, if few.
        lost_seat: the last seat to which Reserver steered it and that kube-scheduler refused.
        recalled: the node of a seat that borrowers use, which stops lending; empty without one.
    """

    nodes: Sequence[str] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    waits_for: WaitsFor | None = None
    in_the_way: tuple[Ref, ...] = ()
    lost_seat: Reservation | None = None
    recalled: str = ""
