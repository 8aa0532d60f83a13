"""The effects of decisions on the cluster, for the I/O layer to carry out."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.cluster.pod import Pod


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
