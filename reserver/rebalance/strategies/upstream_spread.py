"""RemovePodsViolatingTopologySpreadConstraint: domains with more pods than their spread allows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.constraints import Spread
from reserver.cluster.labels import Requirement, Selector
from reserver.rebalance.arguments.placement import RemovePodsViolatingTopologySpreadConstraint
from reserver.rebalance.candidate import Batches, Candidate
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.upstream_state import UpstreamState

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
    """Pods that a rule counts in one domain; the last pod leaves first."""

    value: str
    pods: list[int]


class Imbalance(NamedTuple):
    """A rule that is not met.

    Attributes:
        domains: the domains with pods, the smallest first.
        empty: the number of domains without pods.
        eligible: the rows that count.
    """

    rule: Rule
    domains: list[Domain]
    empty: int
    eligible: Bools

    @property
    def average(self) -> float:
        """The mean number of pods per domain."""
        total = sum(len(domain.pods) for domain in self.domains)
        return total / (self.empty + len(self.domains))


def imbalances(args: Args, state: UpstreamState) -> Iterator[Imbalance]:
    """Yield the rules that are not met, namespace by namespace.

    Only pods that may be evicted are counted, as upstream does.
    """
    index = state.index
    counted = state.chosen(args.namespaces, args.label_selector)
    for namespace in index.namespaces.values:
        span = index.span(namespace)
        pods = (span.start + np.flatnonzero(counted[span])).tolist()
        if not any(index.pods[pod].spreads for pod in pods):
            continue
        pods = [pod for pod in pods if state.evictor.allows(pod)]
        counted[span] = False
        counted[pods] = True
        for rule in _rules(args, index, pods):
            matching = index.found([namespace], rule.spread.selector)
            found = _domains(state, rule, matching[counted[matching]].tolist())
            if _is_uneven(found):
                yield found


def find(args: Args, state: UpstreamState) -> Batches:
    """Yield the pods whose eviction reduces the skew, one by one, each once.

    Each rule is solved by itself, before any pod is evicted.
    """
    leaving: dict[int, str] = {}
    for found in imbalances(args, state):
        key = found.rule.spread.topology_key
        for pod in _even_out(args, found, state):
            leaving.setdefault(pod, f"more pods are in its {key} than its spread allows")
    for pod, reason in leaving.items():
        if state.passes(pod):
            yield [Candidate(pod, reason)]


def _rules(args: Args, index: PodIndex, pods: list[int]) -> list[Rule]:
    """Return the distinct constraints of the pods of a namespace, in their order."""
    found: dict[Hashable, Rule] = {}
    for pod in pods:
        listed = index.pods[pod]
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


def _domains(state: UpstreamState, rule: Rule, pods: list[int]) -> Imbalance:
    """Return the pods that a rule counts by their domains; eligible nodes alone make one too."""
    spread = rule.spread
    index, fit = state.index, state.evictor.fit
    eligible = index.shown.copy()
    if spread.honors_affinity:
        eligible &= fit.matching(index.pods[rule.like].pod.constraints)
    if spread.honors_taints:
        eligible &= fit.tolerated(index.pods[rule.like].pod.constraints)
    key, by_value = spread.topology_key, dict[str, list[int]]()
    for pod in pods:
        value = index.nodes[index.rows[pod]].node.labels.get(key)
        if value is not None and not index.pods[pod].pod.terminating:
            by_value.setdefault(value, []).append(pod)
    domains = [
        Domain(value, sorted(found, key=lambda pod: _rank(index.pods[pod])))
        for value, found in by_value.items()
    ]
    domains.sort(key=lambda domain: (len(domain.pods), domain.value))
    column = index.topology.labels.column(key)
    deserted = column.ids[eligible & column.present() & ~column.among(by_value)]
    return Imbalance(rule, domains, len(np.unique(deserted)), eligible)


def _is_uneven(found: Imbalance) -> bool:
    if not found.domains:
        return False
    least = 0 if found.empty else len(found.domains[0].pods)
    return len(found.domains[-1].pods) - least > found.rule.spread.max_skew


def _rank(pod: ListedPod) -> tuple[bool, bool, int]:
    """Sort pods with node rules first, then the highest priority.

    So does upstream since 2025, although its comments state the opposite.
    """
    return not pod.has_node_rules, pod.priority is not None, pod.priority or 0


def _even_out(args: Args, found: Imbalance, state: UpstreamState) -> Iterator[int]:
    """Yield what leaves the large domains for the small ones (balanceDomains)."""
    average, skew_allowed = found.average, found.rule.spread.max_skew
    domains: list[list[int]] = [[] for _ in range(found.empty)]
    domains += [domain.pods for domain in found.domains]
    below, fit = _rows_below(found, state.index), state.evictor.fit
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
            domains[high].sort(key=lambda pod: fit.fits_elsewhere(pod, below))
            sorted_at = high
        leaving = domains[high][-moving:]
        for pod in leaving:
            if not args.topology_balance_node_fit or fit.fits_elsewhere(pod, below):
                yield pod
        del domains[high][-moving:]
        domains[low].extend(leaving)


def _rows_below(found: Imbalance, index: PodIndex) -> Bools:
    """Return the eligible rows in domains of less than the average size."""
    average = found.average
    large = {domain.value for domain in found.domains if len(domain.pods) >= average}
    column = index.topology.labels.column(found.rule.spread.topology_key)
    return found.eligible & column.present() & ~column.among(large)
