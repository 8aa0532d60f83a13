"""Constraints on neighbours, in both directions: pod affinity, anti-affinity, topology spread.

The rules are those of kube-scheduler's plugins/interpodaffinity/filtering.go, and of
plugins/podtopologyspread (common.go, filtering.go) for ``whenUnsatisfiable: DoNotSchedule``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce

import numpy as np

from reserver.cluster.categorical import Bools, Ids
from reserver.cluster.constraints import PodTerm, Spread
from reserver.cluster.labels import EVERYTHING, NOTHING, Selector, equals
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.scheduling.node_rules import allowed_by_affinity, tolerated
from reserver.scheduling.reasons import (
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    POD_AFFINITY,
    SPREAD,
    SPREAD_LABEL,
    Refusal,
)


def affinity_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield the refusals of nodes because of the pods in their domains."""
    constraints = pod.constraints
    if constraints.affinity:
        yield Refusal(POD_AFFINITY, ~_near_all(pod, snapshot))
    if constraints.anti_affinity:
        yield Refusal(ANTI_AFFINITY, near_any(constraints.anti_affinity, snapshot))
    yield Refusal(EXISTING_ANTI_AFFINITY, _unwanted(pod, snapshot))


def _near_all(pod: Pod, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether its domains have pods that match all affinity terms.

    One pod has to match all terms. The first pod of a group finds no match yet: if no node with any
    of the topology labels has such a pod, and the pod matches its own terms, it may go to any node
    with all of the labels.
    """
    terms, topology = pod.constraints.affinity, snapshot.topology
    rows = companions(terms, snapshot)
    keys = {term.topology_key for term in terms}
    domains = [topology.domains_of(key, rows) for key in keys]
    meets_own = all(_means(term, pod, snapshot) for term in terms)
    if meets_own and not any(domain.any() for domain in domains):
        return topology.labels.all_present(keys)
    near: Bools = np.logical_and.reduce(domains)
    return near


def companions(terms: Iterable[PodTerm], snapshot: Snapshot) -> Ids:
    """Return the row of each bound pod that all of these terms match."""
    residents = snapshot.residents
    meant = (residents.matching(_namespaces(term, snapshot), term.selector) for term in terms)
    return residents.rows_of(reduce(np.intersect1d, meant))


def near_any(terms: Iterable[PodTerm], snapshot: Snapshot) -> Bools:
    """Return, for each row, whether one of its domains has a pod that any term matches."""
    near = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for term, rows in meant_by(terms, snapshot):
        near |= snapshot.topology.domains_of(term.topology_key, rows)
    return near


def meant_by(terms: Iterable[PodTerm], snapshot: Snapshot) -> Iterator[tuple[PodTerm, Ids]]:
    """Yield each term with the rows of the pods that it matches."""
    for term in terms:
        meant = snapshot.residents.matching(_namespaces(term, snapshot), term.selector)
        yield term, snapshot.residents.rows_of(meant)


def _unwanted(pod: Pod, snapshot: Snapshot) -> Bools:
    """Return, for each row, whether anti-affinity of a pod in its domains rejects this pod."""
    unwanted = np.zeros(len(snapshot.exists), dtype=np.bool_)
    meant = partial(rejects, pod=pod, snapshot=snapshot)
    for key, rows in snapshot.residents.rows_rejecting(pod.labels, meant):
        unwanted |= snapshot.topology.domains_of(key, rows)
    return unwanted


def rejects(term: PodTerm, pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether an anti-affinity term of a bound pod matches this pod.

    An unknown namespace has no labels.
    """
    if pod.name.namespace not in term.namespaces:
        labels = snapshot.namespaces.get(pod.name.namespace, {})
        if not term.namespace_selector.matches(labels):
            return False
    return term.selector.matches(pod.labels)


def _means(term: PodTerm, pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether a term of a pod matches the pod itself."""
    namespaces = _namespaces(term, snapshot)
    is_there = namespaces is None or pod.name.namespace in namespaces
    return is_there and term.selector.matches(pod.labels)


def _namespaces(term: PodTerm, snapshot: Snapshot) -> frozenset[str] | None:
    """Return the namespaces of a term; None for all.

    A selector matches only known namespaces.
    """
    selector = term.namespace_selector
    if selector == EVERYTHING:
        return None
    if selector == NOTHING:
        return term.namespaces
    found = (name for name, labels in snapshot.namespaces.items() if selector.matches(labels))
    return term.namespaces.union(found)


def spread_refusals(pod: Pod, snapshot: Snapshot) -> Iterator[Refusal]:
    """Yield the refusals of nodes by topology spread constraints."""
    labels = snapshot.topology.labels
    for constraint, eligible in spread_domains(pod, snapshot):
        yield Refusal(SPREAD_LABEL, ~labels.column(constraint.topology_key).present())
        yield Refusal(SPREAD, _too_full(pod, constraint, eligible, snapshot))


def spread_domains(pod: Pod, snapshot: Snapshot) -> Iterator[tuple[Spread, Bools]]:
    """Yield each spread constraint of a pod with the rows of its eligible nodes."""
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
    """Return, for each row, whether its domain would exceed the least one by more than maxSkew.

    `eligible` are the nodes that count for the constraint.
    """
    column = snapshot.topology.labels.column(constraint.topology_key)
    selector = selector_of(pod, constraint)
    rows = rows_of_pods(pod.name.namespace, selector, snapshot)
    counts = np.bincount(column.ids[rows[eligible[rows]]], minlength=column.width)
    is_domain = np.zeros(column.width, dtype=np.bool_)
    is_domain[column.ids[eligible]] = True
    least = counts[is_domain].min() if is_domain.sum() >= max(constraint.min_domains, 1) else 0
    most = constraint.max_skew + least - selector.matches(pod.labels)
    # The last entry is for nodes without the label, which are refused anyway.
    too_full: Bools = np.append(counts > most, False)[column.ids]
    return too_full


def selector_of(pod: Pod, constraint: Spread) -> Selector:
    """Return the selector of the counted pods (`filterTopologySpreadConstraints`)."""
    if constraint.selector == NOTHING:
        return NOTHING
    same = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    return Selector(equals(same).requirements + constraint.selector.requirements)


def rows_of_pods(namespace: str, selector: Selector, snapshot: Snapshot) -> Ids:
    """Return the row of each counted pod.

    Pods that are being deleted do not count, and a selector for everything counts none
    (`countPodsMatchSelector`).
    """
    residents = snapshot.residents
    if selector == EVERYTHING:
        return residents.rows[:0]
    meant = residents.matching((namespace,), selector)
    return residents.rows_of(meant[~residents.terminating[meant]])
