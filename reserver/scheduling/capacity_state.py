"""Capacity, nodes and pending bindings: the part of the state that bindings change.

The terms (assume, forget) and the rules are those of kube-scheduler's backend/cache/cache.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.index import raising
from reserver.reservations.ledger import Ledger
from reserver.reservations.listener import NOBODY, Listener
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref
from reserver.scheduling.closures import Closures
from reserver.scheduling.gangs import Gangs
from reserver.scheduling.in_flight import (
    AssumedPod,
    InFlightBinds,
    PendingResize,
    PendingResizes,
    slots_of,
    with_rest,
)
from reserver.scheduling.pending_pods import Nominations, Waiting

Key = tuple[str, str]
"""Namespace (empty for a node) and name."""


class UnreadableObjects:
    """The malformed pods and nodes, and the nodes whose free room is unknown because of them.

    kube-scheduler counts such a pod, and Reserver cannot. So if anything is held on the node, only
    owners may use it until the object can be read, or is gone.
    """

    def __init__(self, snapshot: Snapshot, listener: Listener) -> None:
        """Begin without any; `listener` is notified of each node that is readable again."""
        self._snapshot = snapshot
        self._listener = listener
        self._nodes: dict[Key, str] = {}

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys of the unreadable objects."""
        return iter(self._nodes)

    def note(self, key: Key, node: str) -> None:
        """Record an unreadable object on a node."""
        if self._nodes.get(key) == node:
            return
        self.trust(key)
        if node:
            self._nodes[key] = node
            self._snapshot.mark_unreadable(node, is_unreadable=True)

    def trust(self, key: Key) -> None:
        """Remove an object that was read, or is gone."""
        node = self._nodes.pop(key, None)
        if node is not None and node not in self._nodes.values():
            self._snapshot.mark_unreadable(node, is_unreadable=False)
            self._listener.on_capacity_freed(node)


class CapacityState:
    """Capacity, nodes and the ledger, with the pods that are being bound or resized.

    Attributes:
        listener: notified of all changes.
        snapshot: the capacity of all nodes.
        pending_resizes: admitted resizes that the watch does not show yet.
        closures: the nodes that are closed for holds for some time.
        unreadable: the unreadable objects and their nodes.
        public_namespaces: the namespaces whose reservations messages may name to any pod.
        is_complete: pods, nodes and reservations have all been listed once. Until then a bound pod
            ends only the reservations in its claims: it may be older than others that name it.
        in_change: the identities of reservations that are being changed, each with the number of
            writes in flight (`State.changing`).
        waiting: the pods that were refused because of holds or a missing seat, by UID, in the
            order of their first refusal.
    """

    def __init__(
        self,
        listener: Listener = NOBODY,
        quotas: Quotas | None = None,
        failed: Callable[[Ref, Exception], None] = raising,
    ) -> None:
        """Begin with an empty state.

        Args:
            listener: notified of all changes.
            quotas: the limits of namespaces; None for no limits.
            failed: called with each reservation whose settling raised an exception.
        """
        self.listener = listener
        self._nodes: dict[str, Node] = {}
        self.snapshot = Snapshot()
        self.ledger = Ledger(self.snapshot, listener, quotas, failed)
        self.closures = Closures()
        self.unreadable = UnreadableObjects(self.snapshot, listener)
        self.public_namespaces: frozenset[str] = frozenset()
        self.is_complete = False
        self.in_change: Counter[str] = Counter()
        self.waiting: dict[str, Waiting] = {}
        self.nominations = Nominations()
        self.gangs = Gangs()
        self.inflight_binds = InFlightBinds()
        self.pending_resizes = PendingResizes(self.snapshot)
        self._pods: dict[PodName, Pod] = {}
        self._assumed: dict[str, AssumedPod] = {}
        self._shown = 0
        self._read: dict[str, Pod] = {}  # By UID: pods that were read, and not shown since.

    def assumption(self, pod_uid: str) -> AssumedPod | None:
        """Return the pending binding of a pod; None without one."""
        return self._assumed.get(pod_uid)

    def node(self, name: str) -> Node | None:
        """Return a watched node; None without one."""
        return self._nodes.get(name)

    def node_seen(self, node: Node) -> None:
        """Store a node from the watch."""
        before = self._nodes.get(node.name)
        self._nodes[node.name] = node
        with self.pending_resizes.giving_way(node.name):
            self.snapshot.set_node(node)
        if before is None:
            self._settle_on(node.name)
        if node != before:
            self.listener.on_node_changed(node.name)

    def node_gone(self, name: str) -> None:
        """Remove a deleted node."""
        self._nodes.pop(name, None)
        self.inflight_binds.drop(name)
        self.snapshot.remove_node(name)
        self._settle_on(name)
        self.listener.on_node_changed(name)

    def assume(self, pod: Pod, node: str, claims: tuple[str, ...]) -> None:
        """Count a pod as bound, and its slots as claimed, before the binding is written.

        The rest of a slot beyond the pod's request is free only once the binding is written.
        """
        self._assumed[pod.uid] = AssumedPod(pod, node, claims)
        self.listener.on_pod_assumed(pod, node)
        self.nominations.drop(pod.uid)
        self.gangs.drop(pod)
        slots = slots_of(pod, node, claims, self.ledger)
        self.snapshot.count(pod, node)
        self._claim(self._assumed[pod.uid])
        if slots:
            self.snapshot.count(with_rest(pod, node, slots, self.snapshot), node)

    def confirm(self, pod_uid: str) -> None:
        """Record that the API server accepted the binding; the watch will show it."""
        assumption = self._assumed.get(pod_uid)
        if assumption is None:
            return  # The watch was faster.
        assumption.is_written = True
        if assumption.is_gone:
            self._claim(assumption)
        self._place_written(assumption.pod, assumption.node)
        self.ledger.written(pod_uid)
        known = self._pods.get(assumption.pod.name)
        if self.is_complete and (known is None or known.uid != pod_uid):
            # Bound and deleted before the watch showed either: it uses nothing now.
            del self._assumed[pod_uid]
            self._uncount(pod_uid)
            self.ledger.pod_gone(assumption.pod)

    def _claim(self, assumption: AssumedPod) -> None:
        if not assumption.claims:
            return  # Most pods; copying one takes a third of a Bind decision.
        pod = replace(assumption.pod, node=assumption.node)
        with self.snapshot.borrowed_once():
            for identity in assumption.claims:
                self.ledger.claim(identity, pod, written=False)

    def forget(self, pod_uid: str) -> None:
        """Take an assumption back: the binding failed."""
        if self._assumed.pop(pod_uid, None) is not None:
            self._uncount(pod_uid)
            self.ledger.unclaim(pod_uid)

    def grow(self, pod: Pod, yielded: Mapping[str, int]) -> PendingResize:
        """Count a bound pod with its coming requests, as far as there is room, until it is resized.

        Args:
            pod: the watched pod with its coming requests.
            yielded: the amounts of its node's holds that it may take.
        """
        shown = self._pods[pod.name]
        growth = self.pending_resizes.began(shown, pod.requests, yielded)
        self._place_written(shown, shown.node)
        return growth

    def ungrow(self, growth: PendingResize) -> None:
        """Count a pod with its watched requests again: it was not resized."""
        if self.pending_resizes.ended(growth):
            self._place_written(self._pods[growth.pod.name], growth.pod.node)
            self.listener.on_node_changed(growth.pod.node)

    def _place_written(self, pod: Pod, node: str) -> None:
        """Count a bound pod with its present or coming requests."""
        before = self.snapshot.counted(pod.uid)
        pod = self.pending_resizes.grown(pod)
        with self.pending_resizes.giving_way(node):
            self.snapshot.count(pod, node)
        if before is not None and before.pod.requests != pod.requests:
            self.listener.on_capacity_freed(node)

    def _uncount(self, pod_uid: str) -> None:
        counted = self.snapshot.counted(pod_uid)
        self.snapshot.uncount(pod_uid)
        if counted is None:
            return
        is_for_owners = counted.node in self.snapshot.whole_nodes
        if is_for_owners or counted.pod.constraints.tolerates_recall:
            self.listener.on_capacity_freed(counted.node)  # An owner may wait for it.
        else:
            self.listener.on_node_changed(counted.node)

    def _settle_on(self, node: str) -> None:
        """Report the reservations on a node that was added or deleted."""
        for reservation in tuple(self.ledger.holding_on(node)):
            self.listener.on_reservation_changed(reservation.ref)
