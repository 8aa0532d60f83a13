"""What a decision wants done in the cluster; the edge does it."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.cluster.pod import Pod


@dataclass(frozen=True, slots=True)
class Steer:
    """Nominate a node for a pod, so that kube-scheduler comes back at once with that one name."""

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Have kube-scheduler try a pod again at once: others of its nodes than these may do.

    Attributes:
        pod: the pod.
        attempts: how many tries it takes to see every node once.
    """

    pod: Pod
    attempts: int


Effect = Steer | Retry
