"""Scheduling constraints of a pod: affinity, tolerations, spread, host ports, volumes.

Only requirements: kube-scheduler scores preferences.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        key: of the taints; empty for all.
        operator: ``Equal`` or ``Exists``. Others tolerate nothing: ``Lt`` and ``Gt`` need the
            feature gate TaintTolerationComparisonOperators, which is off in 1.37.
        value: of the taints, for ``Equal``.
        effect: of the taints; empty for all.
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
        fields: of the node; only ``metadata.name`` exists.
    """

    labels: Selector
    fields: Selector = EVERYTHING


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term of a required pod affinity or anti-affinity.

    Attributes:
        topology_key: the node label whose equal values make a domain.
        namespaces: of the pods.
        namespace_selector: of further namespaces of the pods.
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
        selector: of the pods that are counted.
        match_label_keys: labels whose values they must share with the pod itself.
        max_skew: how many more pods than the least domain a domain may have.
        min_domains: with fewer eligible domains, the least domain counts as empty.
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
    """A node's port that a pod takes."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Return whether both exclude each other (`CheckConflict` in kube-scheduler/framework)."""
        same = (self.protocol, self.port) == (other.protocol, other.port)
        return same and (self.ip == other.ip or ANY_IP in {self.ip, other.ip})


ANY_IP = "0.0.0.0"  # noqa: S104 - what Kubernetes takes for all addresses of a node


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
        host_ports: the node's ports that it takes.
        are_too_many: there are so many that none is read, and only kube-scheduler judges where the
            pod can go.
        tolerates_recall: the pod may borrow what holds lend, and is deleted when an owner comes.
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

    def selectors(self) -> Iterator[Selector]:
        """Yield every selector."""
        yield self.node_selector
        for alternative in self.node_terms or ():
            yield alternative.labels
            yield alternative.fields
        for term in (*self.affinity, *self.anti_affinity):
            yield term.selector
            yield term.namespace_selector
        for constraint in self.spread:
            yield constraint.selector

    @property
    def are_about_neighbours(self) -> bool:
        """Whether they depend on the pods that are there."""
        return bool(self.spread or self.affinity or self.anti_affinity)

    @property
    def terms(self) -> int:
        """How many alternatives, terms and constraints there are."""
        alternatives = self.node_terms or ()
        return sum(map(len, (alternatives, self.affinity, self.anti_affinity, self.spread)))

    @property
    def labels(self) -> int:
        """How many labels all selectors ask for together."""
        written = (selector for selector in self.selectors() if selector != NOTHING)
        asked = sum(len(selector.requirements) for selector in written)
        return asked + sum(len(constraint.match_label_keys) for constraint in self.spread)


UNCONSTRAINED = Constraints()
TOO_MANY = Constraints(are_too_many=True)

LENT = "reserver.io/lent"
"""The key of the toleration by which a pod may borrow what holds lend.

The API server lets nobody take a toleration from a pod, as it does labels and annotations: nobody
can borrow, and then keep what is lent.
"""
