"""Topology spread constraints with ``whenUnsatisfiable: DoNotSchedule``.

The rules are those of kube-scheduler's plugins/podtopologyspread (common.go, filtering.go).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Spread
from reserver.cluster.labels import EVERYTHING, NOTHING, Selector, equals
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.scheduling.node_rules import allowed_by_affinity, tolerated
from reserver.scheduling.reasons import SPREAD, SPREAD_LABEL, Refusal


def spread_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield what keeps a pod from nodes because their domains have too many like it."""
    labels = snapshot.topology.labels
    for constraint, eligible in spread_domains(pod, snapshot):
        yield Refusal(SPREAD_LABEL, ~labels.column(constraint.topology_key).present())
        yield Refusal(SPREAD, _too_full(pod, constraint, eligible, snapshot))


def spread_domains(pod: Pod, snapshot: Snapshot) -> Iterator[tuple[Spread, Bools]]:
    """Yield each constraint of a pod with the rows whose nodes count for it."""
    constraints = pod.constraints.spread
    if not constraints:
        return
    # Only nodes that have the labels of all constraints count for any.
    keys = (each.topology_key for each in constraints)
    counted = snapshot.exists & snapshot.topology.labels.all_present(keys)
    allowed = allowed_by_affinity(pod.constraints, snapshot)
    untainted = tolerated(pod.constraints, snapshot)
    for constraint in constraints:
        eligible = counted.copy()
        if constraint.honors_affinity:
            eligible &= allowed
        if constraint.honors_taints:
            eligible &= untainted
        yield constraint, eligible


def _too_full(pod: Pod, constraint: Spread, eligible: Bools, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether its domain would exceed the least one by more than allowed.

    `eligible` says which nodes count for the constraint.
    """
    column = snapshot.topology.labels.column(constraint.topology_key)
    selector = selector_of(pod, constraint)
    rows = rows_of_pods(pod.name.namespace, selector, snapshot)
    counts = np.bincount(column.ids[rows[eligible[rows]]], minlength=column.width)
    is_domain = np.zeros(column.width, dtype=np.bool_)
    is_domain[column.ids[eligible]] = True
    least = counts[is_domain].min() if is_domain.sum() >= max(constraint.min_domains, 1) else 0
    most = constraint.max_skew + least - selector.matches(pod.labels)
    # The last one is for nodes without the label, which are refused for that.
    too_full: Bools = np.append(counts > most, False)[column.ids]
    return too_full


def selector_of(pod: Pod, constraint: Spread) -> Selector:
    """Return the labels of the pods that are counted (`filterTopologySpreadConstraints`)."""
    if constraint.selector == NOTHING:
        return NOTHING
    same = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    return Selector(equals(same).requirements + constraint.selector.requirements)


def rows_of_pods(namespace: str, selector: Selector, snapshot: Snapshot) -> np.ndarray:
    """Return the row of each pod that is counted.

    Pods that are being deleted are not, and a selector for everything counts none
    (`countPodsMatchSelector`).
    """
    residents = snapshot.residents
    if selector == EVERYTHING:
        return residents.rows[:0]
    counted = residents.matching((namespace,), selector) & ~residents.terminating
    return residents.rows[counted]
