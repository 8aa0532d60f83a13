"""Pods that wait: what is kept of their refusal, and where they are nominated.

kube-scheduler nominates a pod's node when it preempts for the pod, Reserver when it steers it. The
pod counts on its node against pods of the same or a lower priority, so that nobody takes the room
that was made for it (pkg/scheduler/framework/runtime/framework.go, addGENominatedPods).
kube-scheduler does not know of holds, though: where some are, it sees room for both, and only we
can tell that there is not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

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


MOST_ASKED = 1_000
"""Owner rules that are asked on behalf of other pods in one call: two milliseconds."""


class Nominations:
    """The nominated pods, and their nodes."""

    def __init__(self) -> None:
        self._nodes_of: dict[str, tuple[str, ...]] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}

    def nodes(self) -> Iterable[str]:
        """Return where pods are nominated."""
        return self._pods_on.keys()

    def expect(self, pod: Pod, nodes: Sequence[str]) -> None:
        """Count a pod on each of some nodes, and nowhere else, until its nomination is seen."""
        if self._nodes_of.get(pod.uid) != tuple(nodes):
            self.drop(pod.uid)
            self._nodes_of[pod.uid] = tuple(nodes)
        for node in nodes:
            self._pods_on.setdefault(node, {})[pod.uid] = pod

    def seen(self, pod: Pod, before: Pod | None) -> None:
        """Take a pod as the watch shows it; `before` is how it showed it last."""
        if pod.node:
            self.drop(pod.uid)
        elif pod.nominated_node:
            self.expect(pod, (pod.nominated_node,))
        elif before is not None and before.nominated_node:
            self.drop(pod.uid)

    def drop(self, pod_uid: str) -> None:
        """Forget a pod, if it is counted."""
        for node in self._nodes_of.pop(pod_uid, ()):
            pods = self._pods_on[node]
            del pods[pod_uid]
            if not pods:
                del self._pods_on[node]

    def promised(
        self,
        pod: Pod,
        nodes: Iterable[str],
        own: Container[str],
        ledger: LedgerView,
        is_counted: Callable[[str], bool] = lambda _: False,
    ) -> dict[str, dict[str, int]]:
        """Return what is promised on some nodes to pods that come before this one.

        Those are nominated pods of higher priority, and of the same if they were nominated first.
        One that has a seat there is passed over: its room is held. Where so many are nominated
        that they cannot all be asked, the rest counts as having none.

        Args:
            nodes: where to look.
            own: the nodes where the pod has a seat: nobody comes before it there.
            ledger: knows the others' seats.
            is_counted: whether a pod, by its UID, is counted otherwise.
        """
        if not self._pods_on:
            return {}
        promised: dict[str, dict[str, int]] = {}
        asked = 0
        for node in self._pods_on.keys() & nodes:
            if node in own:
                continue
            totals: dict[str, int] = {}
            rules = ledger.asked_on(node)
            for other in self._ahead(pod, node):
                if is_counted(other.uid):
                    continue
                asked += rules
                if asked > MOST_ASKED or not ledger.seats(other, (node,)):
                    for resource, amount in other.requests.items():
                        totals[resource] = totals.get(resource, 0) + amount
            if totals:
                promised[node] = totals
        return promised

    def _ahead(self, pod: Pod, node: str) -> Iterator[Pod]:
        is_first = True
        for uid, other in self._pods_on[node].items():
            if uid == pod.uid:
                is_first = False
            elif other.priority > pod.priority or (is_first and other.priority == pod.priority):
                yield other
