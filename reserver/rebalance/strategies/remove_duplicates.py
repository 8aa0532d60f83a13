"""RemoveDuplicates: pods of one owner crowded on a node while others could take them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.rebalance.arguments.placement import RemoveDuplicates
from reserver.rebalance.candidate import Batches, Candidate, by_row
from reserver.rebalance.cluster_state import ListedPod, Owner
from reserver.rebalance.pod_index import Alike
from reserver.rebalance.strategies import StrategyState

_FEWEST_TARGETS = 2


class Origin(NamedTuple):
    """Whom pods come from: they are copies if owner and images are equal."""

    namespace: str
    kind: str
    name: str
    images: tuple[str, ...]


@dataclass(slots=True)
class Copies:
    """The pods of one origin.

    Attributes:
        on: the number of pods, by row.
        first: the first pod of each owner, by row.
        extra: the other pods in order, by row.
    """

    on: Counter[int] = field(default_factory=Counter)
    first: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    extra: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def everyone(self) -> Iterator[int]:
        """Return all of them."""
        return chain(*self.first.values(), *self.extra.values())


def copies(args: RemoveDuplicates, state: StrategyState) -> dict[Origin, Copies]:
    """Return the pods that count by their origins, where a node has several of one.

    They are in the order of their first pods.
    """
    found: dict[Origin, Copies] = {}
    origins_of = _Origins()
    for pods in by_row(state.rows, _crowded(args, state)):
        row = int(state.rows[pods[0]])
        seen: set[tuple[Origin, ...]] = set()
        for index in pods:
            pod = state.index.pods[index]
            if not _is_looked_at(args, pod) or not state.passes(index):
                continue
            origins = origins_of(pod)
            for origin in origins:
                same = found.get(origin)
                if same is None:
                    same = found[origin] = Copies()
                same.on[row] += 1
                (same.extra if origins in seen else same.first)[row].append(index)
            seen.add(origins)
    crowded = [(origin, same) for origin, same in found.items() if same.extra]
    return dict(sorted(crowded, key=lambda each: min(each[1].everyone())))


def _crowded(args: RemoveDuplicates, state: StrategyState) -> Bools:
    """Return the pods that the strategy looks at whose owners have several on some node.

    Namespaces and images are not compared: few pods are left already.
    """
    chosen = state.chosen(args.namespaces)
    owners = Alike([pod.owners for pod in state.index.pods], _names)
    pods = np.flatnonzero(chosen)
    places = state.rows[pods] * len(owners.values) + owners.ids[pods]
    _, first, counts = np.unique(places, return_index=True, return_counts=True)
    crowded = np.unique(owners.ids[pods[first[counts > 1]]]).tolist()
    names = {name for number in crowded for name in _names(owners.values[number])}
    chosen &= owners.where(lambda each: not names.isdisjoint(_names(each)))
    return chosen


def _names(owners: tuple[Owner, ...]) -> frozenset[tuple[str, str]]:
    return frozenset((owner.kind, owner.name) for owner in owners)


def find(args: RemoveDuplicates, state: StrategyState) -> Batches:
    """Yield, for each owner and node, the pods beyond an even spread over the nodes they may use.

    Upstream counts neither the room of those nodes nor their cordons.
    """
    for origin, same in copies(args, state).items():
        usable = _usable(state, same)
        targets = np.count_nonzero(usable)
        if targets < _FEWEST_TARGETS:
            continue
        most = -(-same.on.total() // int(targets))
        yield from _beyond(most, origin, same, state)


def _beyond(most: int, origin: Origin, same: Copies, state: StrategyState) -> Batches:
    """Yield the pods of crowded rows one by one, until no more than the even share are left."""
    if state.tries_others:
        leaving = state.index.least_first(list(same.everyone()))
    else:
        leaving = [pod for extra in same.extra.values() for pod in extra[most - 1 :]]
    improves = f"no more than {most} of them on a node"
    for pod in leaving:
        row = int(state.rows[pod])
        if same.on[row] <= most or state.has_left(pod):
            continue
        counts = np.zeros(len(state.offered))
        counts[list(same.on)] = list(same.on.values())
        owner, node = f"{origin.kind} {origin.name}", state.index.nodes[row].name
        reason = f"{same.on[row]} pods of {owner} on {node}"
        yield [Candidate(pod, reason, improves, counts < most, counts)]
        if state.has_left(pod):
            same.on[row] -= 1
            same.on[int(state.rows[pod])] += 1


def _is_looked_at(args: RemoveDuplicates, pod: ListedPod) -> bool:
    if not pod.owners or not pod.images:
        return False
    return not any(owner.kind in args.exclude_owner_kinds for owner in pod.owners)


class _Origins:
    """The origins of pods, sorted; most pods of a template share owners and images."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], tuple[Origin, ...]] = {}

    def __call__(self, pod: ListedPod) -> tuple[Origin, ...]:
        key = (pod.name.namespace, id(pod.owners), id(pod.images))
        known = self._known.get(key)
        if known is None:
            namespace = pod.name.namespace
            known = tuple(
                sorted(Origin(namespace, own.kind, own.name, pod.images) for own in pod.owners)
            )
            self._known[key] = known
        return known


def _usable(state: StrategyState, same: Copies) -> Bools:
    """Return the rows that the copies may use; demands that only one row meets do not count."""
    usable: Bools = np.zeros(len(state.offered), dtype=np.bool_)
    pods = state.index.pods
    distinct = {id(pods[n].pod.constraints): n for extra in same.extra.values() for n in extra}
    for number in distinct.values():
        rows = state.admitting(pods[number].pod.constraints)
        if np.count_nonzero(rows) >= _FEWEST_TARGETS:
            usable |= rows
    return usable
