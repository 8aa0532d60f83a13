"""Scheduling constraints of a pod: affinity, tolerations, spread, host ports, volumes.

Only requirements: kube-scheduler scores preferences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reserver.cluster.labels import EVERYTHING, NOTHING, Selector


class Taint(NamedTuple):
    """A taint of a node that keeps pods away: its effect is NoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """A toleration of a pod.

    Attributes:
        key: key of the tolerated taints; empty for every key.
        operator: ``Equal`` or ``Exists``. Other operators tolerate nothing: ``Lt`` and ``Gt`` need
            the feature gate TaintTolerationComparisonOperators, which is off in 1.37.
        value: value of the tolerated taints, for ``Equal``.
        effect: effect of the tolerated taints; empty for every effect.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether a taint is tolerated (`ToleratesTaint` in api/core/v1/toleration.go)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (self.operator == "Equal" and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One alternative of a required node affinity: a node must match both selectors.

    Attributes:
        labels: selects labels of the node.
        fields: selects fields of the node; only ``metadata.name`` exists.
    """

    labels: Selector
    fields: Selector = EVERYTHING


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term of a required pod affinity or anti-affinity.

    Attributes:
        selector: selects the labels of the pods.
        topology_key: the node label whose equal values make a domain.
        namespaces: namespaces of the pods.
        namespace_selector: selects further namespaces of the pods.
    """

    selector: Selector
    topology_key: str
    namespaces: frozenset[str] = frozenset()
    namespace_selector: Selector = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A topology spread constraint with ``whenUnsatisfiable: DoNotSchedule``.

    Attributes:
        topology_key: the node label whose equal values make a domain.
        selector: selects the pods that are counted.
        match_label_keys: labels whose values the counted pods must share with the pod itself.
        max_skew: most pods of a domain above the domain with the fewest pods.
        min_domains: with fewer eligible domains, the smallest domain counts as empty.
        honors_affinity: only nodes that the pod's node selector and affinity allow are eligible.
        honors_taints: only nodes whose taints the pod tolerates are eligible.
    """

    topology_key: str
    selector: Selector
    match_label_keys: tuple[str, ...] = ()
    max_skew: int = 1
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class HostPort(NamedTuple):
    """A host port of a pod."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Return whether both exclude each other (`CheckConflict` in kube-scheduler/framework)."""
        same = (self.protocol, self.port) == (other.protocol, other.port)
        return same and (self.ip == other.ip or ANY_IP in {self.ip, other.ip})


ANY_IP = "0.0.0.0"  # noqa: S104 - stands for all addresses of a node in Kubernetes


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The scheduling constraints of a pod; equal for most pods of a template.

    Attributes:
        tolerations: ``spec.tolerations``.
        node_selector: ``spec.nodeSelector``.
        node_terms: alternatives of the required node affinity; None without one.
        affinity: required pod affinity; all terms must be met.
        anti_affinity: required pod anti-affinity; no term may be met.
        spread: all constraints must be met.
        host_ports: host ports of the pod.
        are_too_many: the pod has too many constraints to read, so only kube-scheduler judges its
            nodes.
        tolerates_recall: the pod may borrow room that holds lend, and is deleted for an owner.
    """

    tolerations: tuple[Toleration, ...] = ()
    node_selector: Selector = EVERYTHING
    node_terms: tuple[NodeTerm, ...] | None = None
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    are_too_many: bool = False
    tolerates_recall: bool = False

    @property
    def are_about_neighbours(self) -> bool:
        """Whether they depend on the pods on the node or in its domain."""
        return bool(self.spread or self.affinity or self.anti_affinity)


UNCONSTRAINED = Constraints()
TOO_MANY = Constraints(are_too_many=True)

LENT = "reserver.io/lent"
"""The key of the toleration by which a pod may borrow room that holds lend.

The API server never removes a toleration from a pod, unlike labels and annotations: no pod can
borrow and later keep the lent room.
"""
