"""Waiting pods: the record of their refusal, and their nominations.

kube-scheduler nominates a pod's node when it preempts for the pod, Reserver when it steers it. The
pod counts on its node against pods of the same or a lower priority, so that no other pod takes the
room that was made for it (pkg/scheduler/framework/runtime/framework.go, addGENominatedPods).
kube-scheduler does not see holds: on a node with holds it may see room for both pods where there is
none, so Reserver counts nominated pods too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

LEAST_SAMPLE = 100
"""The least number of nodes that kube-scheduler searches for (minFeasibleNodesToFind in
pkg/scheduler/schedule_one.go)."""

MOST_VICTIMS = 1_000
"""Most spared victims that are remembered for one pod."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that was refused because of others' holds, or because its seat was missing.

    Attributes:
        pod: the latest version of the pod, from kube-scheduler or the watch.
        names: the named nodes, if fewer than a whole sample: kube-scheduler has refused all other
            nodes. None for a whole sample, as nodes outside it may fit as well.
        kept_by: the reservation for whose seats it waits; None without one.
        spared: the UIDs of spared victims by node.
        spared_more: whether there were more victims than are remembered.
    """

    pod: Pod
    names: tuple[str, ...] | None
    spared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spared_more: bool = False
    kept_by: Reservation | None = None

    def may_take(self, node: str) -> bool:
        """Return whether kube-scheduler may accept a node for the pod."""
        return self.names is None or node in self.names


def offered(names: Sequence[str], known: Callable[[str], str]) -> tuple[str, ...] | None:
    """Return the names of a Filter call to remember; None for a whole sample.

    Args:
        known: returns the stored copy of a name.
    """
    return tuple(map(known, names)) if len(names) < LEAST_SAMPLE else None


def remembered(
    spared: Mapping[str, tuple[str, ...]], known: Callable[[str], str]
) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Return the spared victims to remember, and whether some were left out.

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
"""Most owner rules that are evaluated for other pods in one call, in 2 ms."""


class Nominations:
    """The nominated pods, and their nodes."""

    def __init__(self) -> None:
        self._nodes_of: dict[str, tuple[str, ...]] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}

    def nodes(self) -> Iterable[str]:
        """Return the nodes with nominated pods."""
        return self._pods_on.keys()

    def expect(self, pod: Pod, nodes: Sequence[str]) -> None:
        """Count a pod on each of some nodes until the watch shows its nomination."""
        if self._nodes_of.get(pod.uid) != tuple(nodes):
            self.drop(pod.uid)
            self._nodes_of[pod.uid] = tuple(nodes)
        for node in nodes:
            self._pods_on.setdefault(node, {})[pod.uid] = pod

    def seen(self, pod: Pod, before: Pod | None) -> None:
        """Store a pod's nomination from the watch; `before` is its former version."""
        if pod.node:
            self.drop(pod.uid)
        elif pod.nominated_node:
            self.expect(pod, (pod.nominated_node,))
        elif before is not None and before.nominated_node:
            self.drop(pod.uid)

    def drop(self, pod_uid: str) -> None:
        """Stop counting a pod."""
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
        """Return the amounts on some nodes that are promised to pods with precedence.

        These are nominated pods of higher priority, and of the same if nominated first. A pod with
        a seat there is skipped, as its room is held. Beyond `MOST_ASKED` owner rules, pods count as
        having no seat.

        Args:
            nodes: the nodes to look at.
            own: the nodes of the pod's seats, on which no other pod has precedence.
            ledger: the other pods' seats.
            is_counted: returns whether a pod, by its UID, is counted elsewhere.
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
