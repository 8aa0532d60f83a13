"""RemoveDuplicates: pods of one owner crowded on a node while others could take them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from reserver.rebalance.arguments.placement import RemoveDuplicates
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.pod_index import PodIndex
from reserver.rebalance.strategies.candidate import Batches, Candidate, Judge

_FEWEST_TARGETS = 2


class Origin(NamedTuple):
    """Whom pods come from: they are copies if owner and images are equal."""

    namespace: str
    kind: str
    name: str
    images: tuple[str, ...]


class Copies(NamedTuple):
    """The pods of one origin.

    Attributes:
        total: how many there are that may be evicted.
        extra: by row, those beyond the first one there, in order.
    """

    total: int
    extra: dict[int, list[int]]


def copies(args: RemoveDuplicates, view: PodIndex, judge: Judge) -> dict[Origin, Copies]:
    """Return the pods that may be evicted by their origins, where a node has several of one."""
    chosen = view.chosen(args.namespaces)
    totals: Counter[Origin] = Counter()
    extra: dict[Origin, dict[int, list[int]]] = {}
    origins_of = _Origins()
    for row in view.shown_rows():
        seen: set[tuple[Origin, ...]] = set()
        for index in view.listed(row):
            pod = view.pods[index]
            if not chosen[index] or not _is_looked_at(args, pod) or not judge.passes(index):
                continue
            origins = origins_of(pod)
            totals.update(origins)
            if origins in seen:
                for origin in origins:
                    extra.setdefault(origin, {}).setdefault(row, []).append(index)
            seen.add(origins)
    return {origin: Copies(totals[origin], rows) for origin, rows in extra.items()}


def find(args: RemoveDuplicates, view: PodIndex, judge: Judge, now: float) -> Batches:  # noqa: ARG001 - all strategies alike
    """Yield, for each owner and node, the pods beyond an even spread over the nodes they may use.

    Upstream counts neither the room of those nodes nor their cordons.
    """
    for origin, pods in copies(args, view, judge).items():
        targets = _targets(view, judge, pods)
        if targets < _FEWEST_TARGETS:
            continue
        most = -(-pods.total // targets)
        reason = f"{origin.kind} {origin.name} has more than {most} pods on the node"
        for extra in pods.extra.values():
            if len(extra) + 1 > most:
                yield [Candidate(pod, reason) for pod in extra[most - 1 :]]


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


def _targets(view: PodIndex, judge: Judge, pods: Copies) -> int:
    """Return how many nodes the copies may use; demands that only one node meets do not count."""
    usable = view.shown & False
    for distinct in _distinct(view, pods):
        rows = judge.fit.admitting(distinct) & view.shown
        if rows.sum() >= _FEWEST_TARGETS:
            usable |= rows
    return int(usable.sum())


def _distinct(view: PodIndex, pods: Copies) -> list[int]:
    """Return one pod for each set of demands."""
    found = {
        id(view.pods[pod].pod.constraints): pod for extra in pods.extra.values() for pod in extra
    }
    return list(found.values())
