"""A waiting pod, and the little that is kept of its refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation

LEAST_SAMPLE = 100
"""kube-scheduler looks for at least so many nodes before it stops: minFeasibleNodesToFind in
pkg/scheduler/schedule_one.go."""

MOST_VICTIMS = 1_000
"""How many spared victims are remembered for one pod."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that was refused because of what is held for others, or because its seat was missing.

    Attributes:
        pod: the pod as kube-scheduler sent it, or as the watch has shown it since.
        names: the nodes that kube-scheduler would have taken; None if they were a whole sample, so
            that a node outside it may do as well. It has refused by itself all that it did not
            name otherwise.
        kept_by: the reservation for whose seats it waits; None if it does not.
        spared: the nodes on which it would have evicted pods, with their UIDs.
        spared_more: there were more of them than are remembered.
    """

    pod: Pod
    names: tuple[str, ...] | None
    spared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spared_more: bool = False
    kept_by: Reservation | None = None

    def may_take(self, node: str) -> bool:
        """Return whether a node is of use to the pod, as far as kube-scheduler is concerned."""
        return self.names is None or node in self.names


def offered(names: Sequence[str], known: Callable[[str], str]) -> tuple[str, ...] | None:
    """Return what to remember of the nodes of a Filter call.

    Args:
        known: returns the stored copy of a name.
    """
    return tuple(map(known, names)) if len(names) < LEAST_SAMPLE else None


def remembered(
    spared: Mapping[str, tuple[str, ...]], known: Callable[[str], str]
) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Return which spared victims to remember, and whether some were left out.

    Args:
        spared: UIDs by node; the nodes with the fewest come first.
        known: returns the stored copy of a UID.
    """
    kept: dict[str, tuple[str, ...]] = {}
    left = MOST_VICTIMS
    for node in sorted(spared, key=lambda name: len(spared[name])):
        left -= len(spared[node])
        if left < 0:
            return kept, True
        kept[node] = tuple(map(known, spared[node]))
    return kept, False
