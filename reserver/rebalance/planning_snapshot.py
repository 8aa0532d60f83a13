"""A copy of the cluster on which a plan tries moves of pods.

`fit` decides whether a pod has room on a node, as in Filter, but every hold counts as used, even a
hold of the pod itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise
from types import MappingProxyType

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Constraints, PodTerm
from reserver.cluster.headroom import Int64s
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.rebalance.capacity import (
    NOTHING_HELD,
    Held,
    requested_by_node,
    requests_of,
    snapshot_of,
    takes_room,
)
from reserver.rebalance.cluster_state import ClusterState, ListedPod
from reserver.rebalance.limits import Disruptions
from reserver.rebalance.move_cost import ORDINARY, cost
from reserver.rebalance.pod_index import Alike, Once
from reserver.rebalance.policy import NO_LIMITS, EvictionLimits
from reserver.scheduling.fit import allowed, constraint_refusals, refuse
from reserver.scheduling.neighbours import meant_by, near_any, rejects
from reserver.scheduling.node_rules import node_refusals, volume_refusals

NOWHERE = -1
"""The row of a pod that is on no node."""

_NOBODY = PodName("", "")
_DAEMONS = "DaemonSet"


class PlanningSnapshot:
    """Pods on nodes, as arrays by the pods' numbers and the nodes' rows.

    Attributes:
        snapshot: the cluster after the moves so far. Only this object changes it.
        pods: all pods that have or are to get a node; a pod's number is its index here.
        rows: intp array, pods: the row of each pod's node, `NOWHERE` for none.
        requests: int64 array, pods × columns: requests.
        free: int64 array, rows × columns: resources that are neither requested nor held.
        closed: bool array, rows: nodes that take no pods.
        disruptions: disruptions that budgets allow.
        protected: why pods on nodes may not be moved, by their numbers.
        movable: bool array, pods: pods that may be moved.
        stays_behind: bool array, pods: pods that an empty node may have (daemon, mirror pods).
        before: the requests on each node before all moves, by its name.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        pods: Iterable[Pod],
        disruptions: Disruptions | None = None,
        protected: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Begin with pods where they are; without `disruptions` budgets allow anything."""
        self.snapshot = snapshot
        self.pods = tuple(pods)
        names = [pod.node if takes_room(pod) else "" for pod in self.pods]
        self.rows: Rows = snapshot.rows(names)
        self.disruptions = disruptions or Disruptions()
        self.protected = protected
        self.movable: Bools = self.rows != NOWHERE
        self.movable[list(protected)] = False
        stays = [pod.controller.kind == _DAEMONS or pod.is_mirror for pod in self.pods]
        self.stays_behind: Bools = np.array(stays, dtype=np.bool_)
        self.before = requested_by_node(snapshot)
        self.costs = np.full(len(self.pods), ORDINARY)
        self.closed: Bools = ~snapshot.exists | snapshot.has_unreadable
        # Column by column, as it is read: one pod against all nodes.
        self.free: Int64s = np.asfortranarray(
            snapshot.allocatable - snapshot.requested - snapshot.held
        )
        asked = Alike([pod.requests for pod in self.pods], lambda each: frozenset(each.items()))
        requests, lacks_column = requests_of(asked.values, snapshot)
        self.requests: Int64s = requests[asked.ids]
        self._lacks_column: Bools = lacks_column[asked.ids]
        self._asked = asked.ids
        self._company: dict[int, bool] = {}
        self._admits = Once(self._admitting)
        self._near: dict[int, Bools] = {}
        self._rejecting = _by_label(self.pods)

    def targets(self, number: int, among: Bools | None = None) -> Bools:
        """Return, for each row, whether a pod may go there now; its own node is none.

        Args:
            among: only these rows matter, the others need not be judged; None for all.
        """
        room = self._with_room(number)
        if among is not None:
            room &= among
        return self.may_go(number, room) if room.any() else room

    def may_go(self, number: int, among: Bools | None = None) -> Bools:
        """Return, for each row, whether a pod may go there if there is room.

        The arguments are those of `targets`.
        """
        pod, row = self.pods[number], int(self.rows[number])
        found: Bools = self._admits(pod.constraints) & ~self.closed
        if among is not None:
            found &= among
        if row != NOWHERE:
            found[row] = False
        if (pod.volume_claims or self.has_company(number)) and found.any():
            with self.snapshot.unseen(pod.uid):
                refuse(found, constraint_refusals(pod, self.snapshot))
        return found

    def admits(self, number: int) -> Bools:
        """Return, for each row, whether a pod may go there if room and neighbours let it."""
        pod = self.pods[number]
        found: Bools = self._admits(pod.constraints) & ~self.closed
        if pod.volume_claims:
            with self.snapshot.unseen(pod.uid):
                for _, rows in volume_refusals(pod, self.snapshot):
                    found &= ~rows
        return found & self.has_columns(number)

    def may_stay(self, number: int) -> bool:
        """Return whether a pod could go where it is now, if it were not there."""
        pod, row = self.pods[number], int(self.rows[number])
        with self.snapshot.unseen(pod.uid):
            may = allowed(pod, self.snapshot)
        return bool(may[row] and not self.closed[row] and np.all(self.free[row] >= 0))

    def kind(self, number: int) -> int:
        """Return the number of a pod's kind: equal rows and equal requests, without volumes."""
        return int(self.kinds[number])

    @cached_property
    def kinds(self) -> Rows:
        """Intp array, pods: the kind of each."""
        return self._rules * len(self.pods) + self._asked

    @cached_property
    def _rules(self) -> Rows:
        """Intp array, pods: a number of what decides whether and where each may go."""
        known, found = dict[object, int](), list[int]()
        for pod in self.pods:
            same = (pod.name.namespace, id(pod.labels), id(pod.constraints), pod.health)
            if same not in known:  # Most pods of a template share their values.
                labels = frozenset(pod.labels.items())
                rules = (pod.name.namespace, labels, pod.constraints, pod.health)
                known[same] = known.setdefault(rules, len(known))
            found.append(known[same])
        return np.array(found, dtype=np.intp)

    def may_be_near_foes(self, number: int) -> Bools:
        """Return, for each row, whether pods there may match a pod's required anti-affinity.

        The result is computed once for all pods of a kind, when the first of them is judged, and
        does not count the pod itself.
        """
        kind = int(self._rules[number])
        if kind not in self._near:
            pod, snapshot = self.pods[number], self.snapshot
            near = np.zeros(len(self.closed), dtype=np.bool_)
            for term, rows in meant_by(pod.constraints.anti_affinity, snapshot):
                column = snapshot.topology.labels.column(term.topology_key)
                ids = column.ids[rows]
                counts = np.bincount(ids[ids >= 0], minlength=column.width + 1)
                near |= (counts > term.selector.matches(pod.labels))[column.ids] & column.present()
            self._near[kind] = near
        return self._near[kind]

    def is_near_foes(self, number: int) -> bool:
        """Return whether a pod is where its own required anti-affinity forbids it by now."""
        pod = self.pods[number]
        with self.snapshot.unseen(pod.uid):
            near = near_any(pod.constraints.anti_affinity, self.snapshot)
        return bool(near[self.rows[number]])

    def put(self, number: int, row: int) -> None:
        """Put a pod on the node of a row, or on none with `NOWHERE`."""
        before, pod = int(self.rows[number]), self.pods[number]
        if before != NOWHERE:
            self.free[before] += self.requests[number]
        if row == NOWHERE:
            self.snapshot.uncount(pod.uid)
        else:
            self.free[row] -= self.requests[number]
            node = self.snapshot.name_of(row)
            if before == NOWHERE:
                self.snapshot.count(pod, node)
            else:
                self.snapshot.move(pod.uid, node)
        self.rows[number] = row

    def on(self, row: int) -> Rows:
        """Return the numbers of the pods on the node of a row."""
        return np.flatnonzero(self.rows == row)

    def by_row(self) -> list[Rows]:
        """Return the numbers of the pods on the node of each row."""
        order = np.argsort(self.rows, kind="stable")
        bounds = np.searchsorted(self.rows[order], np.arange(len(self.closed) + 1))
        return [order[start:end] for start, end in pairwise(bounds.tolist())]

    def has_columns(self, number: int) -> bool:
        """Return whether some node offers each resource that a pod requests."""
        return not self._lacks_column[number]

    def has_company(self, number: int) -> bool:
        """Return whether where a pod may go depends on the pods that are there."""
        key = int(self._rules[number])
        if key not in self._company:
            self._company[key] = self._is_about_others(self.pods[number])
        return self._company[key]

    def _is_about_others(self, pod: Pod) -> bool:
        demands = pod.constraints
        if demands.spread or demands.affinity or demands.anti_affinity or demands.host_ports:
            return True
        terms = chain(*(self._rejecting.get(label, ()) for label in (*pod.labels.items(), None)))
        return any(rejects(term, pod, self.snapshot) for term in terms)

    def _admitting(self, demands: Constraints) -> Bools:
        """Return where a pod may go, but for its volumes and the pods that are there."""
        alone = replace(demands, spread=(), affinity=(), anti_affinity=(), host_ports=())
        found = self.snapshot.exists.copy()
        for _, rows in node_refusals(Pod(name=_NOBODY, uid="", constraints=alone), self.snapshot):
            found &= ~rows
        return found

    def _with_room(self, number: int) -> Bools:
        """Return, for each row that is open, whether all that a pod requests is free there."""
        room: Bools = ~self.closed
        room &= self.has_columns(number)
        wanted = self.requests[number]
        for column in wanted.nonzero()[0].tolist():
            room &= self.free[:, column] >= wanted[column]
        return room


def planning_snapshot(
    cluster: ClusterState,
    protects: Callable[[ListedPod], str],
    *,
    held: Held = NOTHING_HELD,
    wanted: Sequence[Pod] = (),
    limits: EvictionLimits = NO_LIMITS,
    now: float | None = None,
) -> PlanningSnapshot:
    """Return the planning snapshot of a cluster.

    Args:
        protects: returns what protects a pod from eviction; empty if nothing does.
        wanted: pods that are to get a node and are not in the cluster, or not on a node there.
        limits: how many pods may be evicted, where nothing else counts them.
        now: unix seconds; the costs of moves depend on it. None if all cost the same.
    """
    disruptions = Disruptions(cluster.budgets, limits)
    listed = [each for each in cluster.pods if takes_room(each.pod)]
    protected = {}
    for number, each in enumerate(listed):
        why = protects(each) or disruptions.refusal(each.pod)
        if why or each.pod.terminating:
            protected[number] = why or "it is being deleted"
    pods = [*(each.pod for each in listed), *wanted]
    found = PlanningSnapshot(snapshot_of(cluster, held), pods, disruptions, protected)
    if now is not None:
        found.costs[: len(listed)] = [cost(each, now) for each in listed]
    return found


def _by_label(pods: Iterable[Pod]) -> dict[tuple[str, str] | None, set[PodTerm]]:
    """Return the terms of all required anti-affinity, by a label that each selects.

    Terms that name no value of a label are under None.
    """
    found: dict[tuple[str, str] | None, set[PodTerm]] = {}
    for term in {term for pod in pods for term in pod.constraints.anti_affinity}:
        positive = next((r for r in term.selector.requirements if r.operator == "In"), None)
        labels = [(positive.key, value) for value in positive.values] if positive else [None]
        for label in labels:
            found.setdefault(label, set()).add(term)
    return found
