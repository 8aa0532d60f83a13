"""Required anti-affinity as upstream reads it: which pods a pod keeps away, and from where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reserver.cluster.labels import Selector
from reserver.rebalance.cluster_state import ListedPod


class AntiAffinityTerm(NamedTuple):
    """A term of required anti-affinity: which pods, and the node label that makes a domain."""

    selector: Selector
    namespaces: frozenset[str]
    topology_key: str

    def is_about(self, pod: ListedPod) -> bool:
        """Return whether a pod is one of those."""
        return pod.name.namespace in self.namespaces and self.selector.matches(pod.pod.labels)


def terms_of(pod: ListedPod) -> tuple[AntiAffinityTerm, ...]:
    """Return the terms of a pod's required anti-affinity; namespace selectors are ignored."""
    own = frozenset({pod.name.namespace})
    return tuple(
        AntiAffinityTerm(term.selector, term.namespaces or own, term.topology_key)
        for term in pod.pod.constraints.anti_affinity
    )


def terms_of_all(pods: Sequence[ListedPod]) -> list[tuple[AntiAffinityTerm, ...]]:
    """Return the terms of each pod; equal ones are mostly the same value."""
    known: dict[tuple[int, str], tuple[AntiAffinityTerm, ...]] = {}
    found: list[tuple[AntiAffinityTerm, ...]] = []
    for pod in pods:
        constraints = pod.pod.constraints
        if not constraints.anti_affinity:
            found.append(())
            continue
        key = (id(constraints), pod.name.namespace)
        found.append(known.setdefault(key, terms_of(pod)))
    return found
