"""Findings of strategies: which pods are in the wrong place, and why.

A strategy is a function that yields batches of pods that ought to leave, in order, each with the
reason. What it looks at it reads when it is asked for the next batch: pods of one batch are judged
at once, before any of them is evicted, and what has become of them shows when the next one is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from reserver.rebalance.cluster_state import PREFER_NO_EVICTION
from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.pod_index import PodIndex


class Candidate(NamedTuple):
    """A pod that ought to leave its node, by its index, and why."""

    pod: int
    reason: str


Batches = Iterator[Sequence[Candidate]]


class Guard(Protocol):
    """Which pods may be evicted."""

    def allows(self, pod: int) -> bool:
        """Return whether nothing protects a pod."""

    def confirms(self, pod: int) -> bool:
        """Return whether it makes sense to evict a pod that nothing protects."""

    def passes(self, pod: int) -> bool:
        """Return both."""


class Judge(Guard, Protocol):
    """Which pods may be evicted, and where they would fit."""

    @property
    def fit(self) -> NodeFit:
        """Where pods would fit."""


class StrategyFailed(Exception):
    """A strategy cannot judge, and evicts nothing more in this cycle."""


_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


def least_first(view: PodIndex, pods: list[int]) -> list[int]:
    """Return pods in the order in which they are missed least: by priority, then by QoS class.

    Of equal ones those go last that prefer no eviction (SortPodsBasedOnPriorityLowToHigh in
    pkg/descheduler/pod).
    """

    def rank(index: int) -> tuple[bool, int, int, bool]:
        pod = view.pods[index]
        qos = _QOS.get(pod.qos, len(_QOS))
        return (
            pod.priority is not None,
            pod.priority or 0,
            qos,
            PREFER_NO_EVICTION in pod.annotations,
        )

    return sorted(pods, key=rank)
