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
from reserver.rebalance.arguments.placement import RemovePodsViolatingTopologySpreadConstraint
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches, Candidate, Judge

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
        domains: those with pods, of the least size first.
        empty: how many domains there are without any.
        eligible: the rows that count.
    """

    rule: Rule
    domains: list[Domain]
    empty: int
    eligible: Bools

    @property
    def average(self) -> float:
        """How many pods each domain would have."""
        total = sum(len(domain.pods) for domain in self.domains)
        return total / (self.empty + len(self.domains))


def imbalances(args: Args, view: PodIndex, judge: Judge) -> Iterator[Imbalance]:
    """Yield the rules that are not met, namespace by namespace.

    Only pods that may be evicted are counted, as upstream does.
    """
    counted = view.chosen(args.namespaces, args.label_selector) & view.is_active & ~view.is_gone
    counted &= view.rows >= 0
    counted[counted] = view.shown[view.rows[counted]]
    for namespace in view.namespaces.values:
        span = view.span(namespace)
        pods = (span.start + np.flatnonzero(counted[span])).tolist()
        if not any(view.pods[pod].spreads for pod in pods):
            continue
        pods = [pod for pod in pods if judge.allows(pod)]
        counted[span] = False
        counted[pods] = True
        for rule in _rules(args, view, pods):
            matching = view.found([namespace], rule.spread.selector)
            found = _domains(view, judge, rule, matching[counted[matching]].tolist())
            if _is_uneven(found):
                yield found


def find(args: Args, view: PodIndex, judge: Judge, now: float) -> Batches:  # noqa: ARG001 - all strategies alike
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
            yield [Candidate(pod, reason)]


def _rules(args: Args, view: PodIndex, pods: list[int]) -> list[Rule]:
    """Return the distinct constraints of the pods of a namespace, in their order."""
    found: dict[Hashable, Rule] = {}
    for pod in pods:
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


def _domains(view: PodIndex, judge: Judge, rule: Rule, pods: list[int]) -> Imbalance:
    """Return the pods that a rule counts by their domains; eligible nodes alone make one too."""
    spread = rule.spread
    eligible = view.shown.copy()
    if spread.honors_affinity:
        eligible &= judge.fit.matching(rule.like)
    if spread.honors_taints:
        eligible &= judge.fit.tolerated(rule.like)
    key, by_value = spread.topology_key, dict[str, list[int]]()
    for pod in pods:
        value = view.nodes[view.rows[pod]].node.labels.get(key)
        if value is not None and not view.pods[pod].pod.terminating:
            by_value.setdefault(value, []).append(pod)
    domains = [
        Domain(value, sorted(found, key=lambda pod: _rank(view.pods[pod])))
        for value, found in by_value.items()
    ]
    domains.sort(key=lambda domain: (len(domain.pods), domain.value))
    column = view.topology.labels.column(key)
    deserted = column.ids[eligible & column.present() & ~column.among(by_value)]
    return Imbalance(rule, domains, len(np.unique(deserted)), eligible)


def _is_uneven(found: Imbalance) -> bool:
    if not found.domains:
        return False
    least = 0 if found.empty else len(found.domains[0].pods)
    return len(found.domains[-1].pods) - least > found.rule.spread.max_skew


def _rank(pod: ListedPod) -> tuple[bool, bool, int]:
    """Sort pods with node rules first; of equals those of the highest priority leave first.

    So does upstream since 2025, whatever its comments say.
    """
    return not pod.has_node_rules, pod.priority is not None, pod.priority or 0


def _even_out(args: Args, judge: Judge, found: Imbalance, view: PodIndex) -> Iterator[int]:
    """Yield what leaves the large domains for the small ones (balanceDomains)."""
    average, skew_allowed = found.average, found.rule.spread.max_skew
    domains: list[list[int]] = [[] for _ in range(found.empty)]
    domains += [domain.pods for domain in found.domains]
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


def _rows_below(found: Imbalance, view: PodIndex) -> Bools:
    """Return the eligible rows in domains of less than the average size."""
    average = found.average
    large = {domain.value for domain in found.domains if len(domain.pods) >= average}
    column = view.topology.labels.column(found.rule.spread.topology_key)
    return found.eligible & column.present() & ~column.among(large)
