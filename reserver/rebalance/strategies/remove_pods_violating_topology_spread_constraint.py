"""RemovePodsViolatingTopologySpreadConstraint: domains with more pods than their spread allows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from reserver.cluster.columns import Bools
from reserver.cluster.constraints import Spread
from reserver.cluster.labels import Requirement, Selector
from reserver.rebalance.arguments import RemovePodsViolatingTopologySpreadConstraint
from reserver.rebalance.inventory import ListedPod
from reserver.rebalance.strategies.wrong import Batches, Judge, Wrong
from reserver.rebalance.view import Indexes, View

Args = RemovePodsViolatingTopologySpreadConstraint


class Rule(NamedTuple):
    """A constraint of a namespace, with the selector that counts.

    Attributes:
        spread: the constraint; its `match_label_keys` are in the selector.
        like: a pod that has it; its affinity and tolerations say which nodes are eligible.
    """

    spread: Spread
    like: int


class Domain(NamedTuple):
    """Pods that a rule counts in one domain, those that leave first at the end."""

    value: str
    pods: list[int]


class Imbalance(NamedTuple):
    """A rule that is not met.

    Attributes:
        rule: the rule.
        domains: of the least size first.
        eligible: the rows that count.
    """

    rule: Rule
    domains: list[Domain]
    eligible: Bools

    @property
    def average(self) -> float:
        """How many pods each domain would have."""
        return sum(len(domain.pods) for domain in self.domains) / len(self.domains)


def imbalances(args: Args, view: View, judge: Judge) -> Iterator[Imbalance]:
    """Yield the rules that are not met, namespace by namespace.

    Only pods that may be evicted are counted, as upstream does.
    """
    counted = view.chosen(args.namespaces, args.label_selector) & view.is_active & ~view.is_gone
    counted &= view.rows >= 0
    counted[counted] = view.shown[view.rows[counted]]
    for namespace in view.namespaces.values:
        span = view.span(namespace)
        pods = span.start + np.flatnonzero(counted[span])
        if not any(view.pods[pod].spreads for pod in pods):
            continue
        pods = np.array([pod for pod in pods.tolist() if judge.allows(pod)], dtype=np.intp)
        for rule in _rules(args, view, pods):
            found = _domains(view, judge, rule, pods)
            sizes = [len(domain.pods) for domain in found.domains]
            if sizes and max(sizes) - min(sizes) > rule.spread.max_skew:
                yield found


def find(args: Args, view: View, judge: Judge, now: float) -> Batches:  # noqa: ARG001 - all strategies alike
    """Yield pods one by one, once each, that would even out what is uneven.

    Each rule is solved by itself, before any pod is evicted.
    """
    leaving: dict[int, str] = {}
    for found in imbalances(args, view, judge):
        key = found.rule.spread.topology_key
        for pod in _even_out(args, judge, found, view):
            leaving.setdefault(pod, f"more pods are in its {key} than its spread allows")
    for pod, reason in leaving.items():
        if judge.passes(pod):
            yield [Wrong(pod, reason)]


def _rules(args: Args, view: View, pods: Indexes) -> list[Rule]:
    """Return the distinct constraints of the pods of a namespace, in their order."""
    found: dict[Hashable, Rule] = {}
    for pod in pods.tolist():
        listed = view.pods[pod]
        for written in listed.spreads:
            if written.when_unsatisfiable in args.constraints:
                spread = _merged(written.spread, listed)
                found.setdefault(_identity(spread, listed), Rule(spread, pod))
    return list(found.values())


def _merged(spread: Spread, pod: ListedPod) -> Spread:
    """Return a constraint whose selector also asks for the pod's values of matchLabelKeys."""
    labels = pod.pod.labels
    own = tuple(
        Requirement(key, "In", frozenset({labels[key]}))
        for key in spread.match_label_keys
        if key in labels
    )
    return replace(spread, selector=Selector(own + spread.selector.requirements))


def _identity(spread: Spread, pod: ListedPod) -> Hashable:
    constraints = pod.pod.constraints
    return (
        spread.max_skew,
        spread.topology_key,
        frozenset(spread.selector.requirements),
        spread.honors_affinity and (constraints.node_selector, constraints.node_terms),
        spread.honors_taints and constraints.tolerations,
        spread.honors_affinity,
        spread.honors_taints,
    )


def _domains(view: View, judge: Judge, rule: Rule, pods: Indexes) -> Imbalance:
    spread = rule.spread
    eligible = view.shown.copy()
    if spread.honors_affinity:
        eligible &= judge.fit.matching(rule.like)
    if spread.honors_taints:
        eligible &= judge.fit.tolerated(rule.like)
    key = spread.topology_key
    by_value: dict[str, list[int]] = {}
    for row in np.flatnonzero(eligible & view.topology.labels.column(key).present()).tolist():
        by_value.setdefault(view.nodes[row].node.labels[key], [])
    matching = pods[view.matching(spread.selector)[pods]]
    for pod in matching.tolist():
        value = view.nodes[view.rows[pod]].node.labels.get(key)
        if value is not None and not view.pods[pod].pod.terminating:
            by_value.setdefault(value, []).append(pod)
    domains = [
        Domain(value, sorted(found, key=lambda pod: _rank(view.pods[pod])))
        for value, found in by_value.items()
    ]
    domains.sort(key=lambda domain: (len(domain.pods), domain.value))
    return Imbalance(rule, domains, eligible)


def _rank(pod: ListedPod) -> tuple[bool, bool, int]:
    """Sort pods with node rules first; of equals those of the highest priority leave first.

    So does upstream since 2025, whatever its comments say.
    """
    return not pod.has_node_rules, pod.priority is not None, pod.priority or 0


def _even_out(args: Args, judge: Judge, found: Imbalance, view: View) -> Iterator[int]:
    """Yield what leaves the large domains for the small ones (balanceDomains)."""
    average, skew_allowed = found.average, found.rule.spread.max_skew
    domains = [domain.pods for domain in found.domains]
    below = _rows_below(found, view)
    sorted_at = -1
    low, high = 0, len(domains) - 1
    while low < high:
        if len(domains[high]) <= average:
            high -= 1
        skew = len(domains[high]) - len(domains[low])
        if skew <= skew_allowed:
            low += 1
            continue
        surplus = ceil(len(domains[high]) - average)
        wanted = ceil(average - len(domains[low]))
        moving = min(surplus, wanted, ceil((skew - skew_allowed) / 2))
        if moving <= 0:
            low += 1
            continue
        if sorted_at != high:
            domains[high].sort(key=lambda pod: judge.fit.fits_elsewhere(pod, below))
            sorted_at = high
        leaving = domains[high][-moving:]
        for pod in leaving:
            if not args.topology_balance_node_fit or judge.fit.fits_elsewhere(pod, below):
                yield pod
        del domains[high][-moving:]
        domains[low].extend(leaving)


def _rows_below(found: Imbalance, view: View) -> Bools:
    """Return the eligible rows in domains of less than the average size."""
    average = found.average
    small = {domain.value for domain in found.domains if len(domain.pods) < average}
    column = view.topology.labels.column(found.rule.spread.topology_key)
    return found.eligible & column.among(small)
