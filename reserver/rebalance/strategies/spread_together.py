"""RemovePodsViolatingTopologySpreadConstraint: all constraints of a pod at once.

A pod leaves the domain with the most pods for one with few, and only where none of the other
constraints that count it becomes worse than it may be. So no constraint undoes the moves of another
one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reserver.cluster.capacity_matrix import Rows
from reserver.cluster.categorical import ABSENT, Bools
from reserver.cluster.constraints import Spread
from reserver.cluster.headroom import Int64s
from reserver.cluster.labels import EVERYTHING, NOTHING, Selector, equals
from reserver.cluster.pod import Pod
from reserver.rebalance.arguments.placement import RemovePodsViolatingTopologySpreadConstraint
from reserver.rebalance.candidate import Batches, Candidate
from reserver.rebalance.plan_builder import NO_ROOM, Floats
from reserver.rebalance.plan_state import PlanState
from reserver.rebalance.planning_snapshot import NOWHERE
from reserver.scheduling.node_rules import allowed_by_affinity, tolerated


class _Rule(NamedTuple):
    """A spread constraint with the pods that it counts.

    Attributes:
        spread: the constraint.
        numbers: the pods that it counts.
        members: the counted pods that the strategy may move, as a set.
        domains: int array, rows: the domain of each node; `ABSENT` for none.
        eligible: bool array, rows: whether the node's domain counts though it has no pod.
    """

    spread: Spread
    numbers: Rows
    members: frozenset[int]
    domains: Int64s
    eligible: Bools

    def counts(self, rows: Rows) -> Int64s:
        """Return how many pods each domain has, with the pods where they are now."""
        of = self.domains[rows[self.numbers]]
        return np.bincount(of[of != ABSENT], minlength=int(self.domains.max(initial=0)) + 1)

    def is_domain(self, rows: Rows) -> Bools:
        """Return the rows whose domain counts: the node is eligible, or the domain has pods."""
        counted = self.counts(rows) > 0
        of = self.domains[self.eligible]
        counted[of[of != ABSENT]] = True
        return counted


MOST_COMPARED = 500_000
"""Most comparisons of a pod with a constraint that counts it, in a namespace: some seconds."""


class _Comparisons:
    """The comparisons that are left for a namespace, which other namespaces do not pay for."""

    def __init__(self) -> None:
        self.left = MOST_COMPARED


def find(args: RemovePodsViolatingTopologySpreadConstraint, state: PlanState) -> Batches:
    """Yield pods of domains that have too many of them."""
    for space, rules in _rules(state, args):
        compared = _Comparisons()
        for rule in rules:
            beside = [each for each in rules if not each.members.isdisjoint(rule.members)]
            yield from _balance(state, rule, beside, compared)
            if compared.left <= 0:
                note = f"{state.strategy} judges no more constraints of {space}: they are too many"
                state.builder.notes.append(note)
                break


def _balance(state: PlanState, rule: _Rule, rules: list[_Rule], compared: _Comparisons) -> Batches:
    """Yield pods until a constraint is met, or nothing more can be done for it."""
    planned = state.planned
    stuck: list[int] = []
    while True:
        counts, is_domain = rule.counts(planned.rows), rule.is_domain(planned.rows)
        least = counts[is_domain].min(initial=0) if is_domain.any() else 0
        is_domain[stuck] = False
        fullest = int(np.where(is_domain, counts, -1).argmax())
        is_met = not is_domain.any() or counts[fullest] - least <= rule.spread.max_skew
        if is_met or compared.left <= 0:
            return
        moves = len(state.builder.moves)
        yield from _lighten(state, rule, rules, fullest, counts, compared)
        if len(state.builder.moves) == moves:
            stuck.append(fullest)


def _lighten(
    state: PlanState,
    rule: _Rule,
    rules: list[_Rule],
    domain: int,
    counts: Int64s,
    compared: _Comparisons,
) -> Batches:
    """Yield the pods of a domain until one has left it."""
    planned, builder = state.planned, state.builder
    there = rule.numbers[rule.domains[planned.rows[rule.numbers]] == domain]
    crowds = _crowds(planned.rows, rules)
    compared.left -= len(rules)
    order = {number: at for at, number in enumerate(state.index.least_first(there))}
    waiting: list[int] = there[~builder.moved[there]].tolist()
    waiting.sort(key=lambda number: (-crowds[planned.rows[number]], order[number]))
    emptier = np.append(counts <= counts[domain] - 2, False)[rule.domains]
    key = rule.spread.topology_key
    reason = f"its domain of {key} has {counts[domain]} of the {len(rule.numbers)} pods like it"
    improves = f"the skew of {key} comes closer to {rule.spread.max_skew}"
    hopeless: set[object] = set()
    for number in waiting:
        alike = _alike(state, rule, rules, number)
        if alike in hopeless:
            kept = state.protection(number) or NO_ROOM
            builder.keep(number, state.why(reason, improves), kept)
            continue
        if compared.left <= 0:
            return
        compared.left -= len(rules)
        accept = emptier & rule.eligible
        for other in rules:
            if other is not rule and number in other.members:
                accept = accept & _bearable(other, planned.rows, int(planned.rows[number]))
        score = np.append(counts, 0)[rule.domains] * 1e6 + crowds
        yield [Candidate(number, reason, improves, accept, score)]
        if state.has_left(number):
            return
        if not state.protection(number) and not builder.refusal(number):
            hopeless.add(alike)


def _alike(state: PlanState, rule: _Rule, rules: list[_Rule], number: int) -> object:
    """Return a key: of one domain, pods with equal keys either all find a place or none."""
    planned = state.planned
    pod = planned.pods[number]
    demands = pod.constraints
    if pod.volume_claims:
        return number
    near = demands.affinity or demands.anti_affinity or demands.host_ports
    is_domain_all = len(rules) == 1 and not near and set(demands.spread) <= {rule.spread}
    return planned.kind(number), None if is_domain_all else int(planned.rows[number])


def _bearable(rule: _Rule, rows: Rows, home: int) -> Bools:
    """Return, for each row, whether a pod that goes there from home makes a constraint no worse."""
    counts, is_domain = rule.counts(rows), rule.is_domain(rows)
    after = np.append(counts + 1, 0)
    source = rule.domains[home]
    bound = (counts[is_domain].min(initial=0) if is_domain.any() else 0) + rule.spread.max_skew
    was = counts[source] if source != ABSENT else 0
    fine = after <= max(bound, was)
    if source != ABSENT:
        fine[source] = True
    fine[-1] = True  # A node without the label: fit decides.
    bearable: Bools = fine[rule.domains]
    return bearable


def _crowds(rows: Rows, rules: list[_Rule]) -> Floats:
    """Return, for each row, how many pods its domains have, over all constraints."""
    crowds: Floats = np.zeros(len(rules[0].domains))
    for rule in rules:
        crowds += np.append(rule.counts(rows), 0)[rule.domains]
    return crowds


def _rules(
    state: PlanState, args: RemovePodsViolatingTopologySpreadConstraint
) -> Iterator[tuple[str, list[_Rule]]]:
    """Yield each namespace with the constraints to judge."""
    index = state.index
    written: defaultdict[str, dict[tuple[Spread, Selector], Pod]] = defaultdict(dict)
    constrained = index.spreads.where(bool)
    constrained &= state.chosen(args.namespaces, args.label_selector)
    known = set[tuple[str, int, int]]()
    for number in np.flatnonzero(constrained).tolist():
        each = index.pods[number]
        space = each.name.namespace
        template = (space, id(each.spreads), id(each.pod.labels))
        if template in known:
            continue
        known.add(template)
        for spread, when in each.spreads:
            if when in args.constraints:
                written[space].setdefault((spread, _selector(each.pod, spread)), each.pod)
    seen = (state.rows != NOWHERE) & state.looked_at[state.rows] & ~index.terminating
    for space in sorted(written):
        rules = [
            _rule(state, spread, selector, pod, seen)
            for (spread, selector), pod in written[space].items()
        ]
        yield space, [rule for rule in rules if len(rule.numbers)]


def _rule(state: PlanState, spread: Spread, selector: Selector, pod: Pod, seen: Bools) -> _Rule:
    """Return a constraint of a pod, with the pods that it counts among `seen`."""
    snapshot = state.planned.snapshot
    eligible = state.looked_at & snapshot.exists
    if spread.honors_affinity:
        eligible &= allowed_by_affinity(pod.constraints, snapshot)
    if spread.honors_taints:
        eligible &= tolerated(pod.constraints, snapshot)
    column = snapshot.topology.labels.column(spread.topology_key)
    spaces = () if selector in {EVERYTHING, NOTHING} else (pod.name.namespace,)
    found = state.index.found(spaces, selector)
    numbers = found[seen[found]]
    return _Rule(
        spread=spread,
        numbers=numbers,
        members=frozenset(numbers.tolist()),
        domains=column.ids.astype(np.int64),
        eligible=eligible,
    )


def _selector(pod: Pod, spread: Spread) -> Selector:
    if spread.selector == NOTHING:
        return NOTHING
    same = {key: pod.labels[key] for key in spread.match_label_keys if key in pod.labels}
    return Selector(equals(same).requirements + spread.selector.requirements)
