"""The nodes that a pod fits on, computed pod by pod and node by node; `fits` has to agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reserver.cluster.constraints import NodeTerm, PodTerm, Spread, Taint
from reserver.cluster.labels import NOTHING, Selector
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod

Amounts = Mapping[str, int]
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass
class NaiveCluster:
    """Nodes, the pods on them, namespaces and holds, as they are."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    holds: dict[str, Amounts] = field(default_factory=dict)

    def fits(self, pod: Pod, node: Node) -> bool:
        return (
            self._taints_allow(pod, node)
            and _affinity_allows(pod, node)
            and self._ports_are_free(pod, node)
            and self._has_room(pod, node)
            and all(self._spread_allows(pod, c, node) for c in pod.constraints.spread)
            and self._is_near(pod, node)
            and not self._is_unwanted(pod, node)
        )

    def _on(self, node: Node) -> list[Pod]:
        return [pod for pod, name in self.pods.values() if name == node.name]

    def _taints_allow(self, pod: Pod, node: Node) -> bool:
        taints = [*node.taints, CORDON] if node.unschedulable else node.taints
        return _tolerates(pod, taints)

    def _ports_are_free(self, pod: Pod, node: Node) -> bool:
        taken = [port for other in self._on(node) for port in other.constraints.host_ports]
        return not any(own.conflicts(port) for own in pod.constraints.host_ports for port in taken)

    def _has_room(self, pod: Pod, node: Node) -> bool:
        held = self.holds.get(node.name, {})
        for name, amount in pod.requests.items():
            taken = sum(other.requests.get(name, 0) for other in self._on(node))
            free = node.allocatable.get(name, 0) - taken - held.get(name, 0)
            if amount and amount > free:
                return False
        return True

    def _spread_allows(self, pod: Pod, constraint: Spread, node: Node) -> bool:
        key = constraint.topology_key
        if key not in node.labels:
            return False
        counts: dict[str, int] = {}
        for other in self.nodes.values():
            if not all(c.topology_key in other.labels for c in pod.constraints.spread):
                continue
            if constraint.honors_affinity and not _affinity_allows(pod, other):
                continue
            if constraint.honors_taints and not _tolerates(pod, other.taints):
                continue
            domain = other.labels[key]
            counts[domain] = counts.get(domain, 0) + self._counted(pod, constraint, other)
        least = min(counts.values()) if len(counts) >= max(constraint.min_domains, 1) else 0
        here = counts.get(node.labels[key], 0)
        return here + _is_meant(pod, pod, constraint) - least <= constraint.max_skew

    def _counted(self, pod: Pod, constraint: Spread, node: Node) -> int:
        if not (
            constraint.selector.requirements or set(constraint.match_label_keys) & {*pod.labels}
        ):
            return 0
        return sum(
            other.name.namespace == pod.name.namespace
            and not other.terminating
            and _is_meant(pod, other, constraint)
            for other in self._on(node)
        )

    def _is_near(self, pod: Pod, node: Node) -> bool:
        terms = pod.constraints.affinity
        if any(self._neighbours_mean(term, node) for term in pod.constraints.anti_affinity):
            return False
        if not terms:
            return True
        keys = [term.topology_key for term in terms]
        if not all(key in node.labels for key in keys):
            return False
        meant = [
            other
            for other in self.nodes.values()
            if any(all(self._means(t, neighbour) for t in terms) for neighbour in self._on(other))
        ]
        if not any(key in other.labels for other in meant for key in keys):
            return all(self._means(term, pod) for term in terms)
        return all(
            any(other.labels.get(key) == node.labels[key] for other in meant) for key in keys
        )

    def _neighbours_mean(self, term: PodTerm, node: Node) -> bool:
        return any(
            self._means(term, neighbour)
            for other in self._domain(term.topology_key, node)
            for neighbour in self._on(other)
        )

    def _is_unwanted(self, pod: Pod, node: Node) -> bool:
        return any(
            _rejects(term, pod, self.namespaces.get(pod.name.namespace, {}))
            for neighbour, name in self.pods.values()
            for term in neighbour.constraints.anti_affinity
            if name in {other.name for other in self._domain(term.topology_key, node)}
        )

    def _domain(self, key: str, node: Node) -> Iterable[Node]:
        if key not in node.labels:
            return []
        return [n for n in self.nodes.values() if n.labels.get(key) == node.labels[key]]

    def _means(self, term: PodTerm, pod: Pod) -> bool:
        namespace, selector = pod.name.namespace, term.namespace_selector
        is_there = (
            namespace in term.namespaces
            or not selector.requirements
            or (namespace in self.namespaces and selector.matches(self.namespaces[namespace]))
        )
        return is_there and term.selector.matches(pod.labels)


def _rejects(term: PodTerm, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
    is_there = pod.name.namespace in term.namespaces or term.namespace_selector.matches(
        namespace_labels
    )
    return is_there and term.selector.matches(pod.labels)


def _tolerates(pod: Pod, taints: Iterable[Taint]) -> bool:
    tolerations = pod.constraints.tolerations
    return all(any(each.tolerates(taint) for each in tolerations) for taint in taints)


def _affinity_allows(pod: Pod, node: Node) -> bool:
    terms = pod.constraints.node_terms
    return pod.constraints.node_selector.matches(node.labels) and (
        terms is None or any(_term_allows(term, node) for term in terms)
    )


def _term_allows(term: NodeTerm, node: Node) -> bool:
    return term.labels.matches(node.labels) and term.fields.matches({"metadata.name": node.name})


def _is_meant(pod: Pod, other: Pod, constraint: Spread) -> bool:
    selector: Selector = constraint.selector
    if selector == NOTHING:
        return False
    keys = [key for key in constraint.match_label_keys if key in pod.labels]
    return selector.matches(other.labels) and all(
        other.labels.get(key) == pod.labels[key] for key in keys
    )
