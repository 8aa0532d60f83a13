"""Strategies for pods that are on the wrong node by what they or their nodes say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from reserver.rebalance.arguments.selecting import ALL, Choice, Selecting


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDuplicates:
    """No two pods of one owner on a node while others have none.

    Attributes:
        namespaces: whose pods are looked at.
        exclude_owner_kinds: pods that have an owner of such a kind stay.
    """

    NAME: ClassVar = "RemoveDuplicates"

    namespaces: Choice = ALL
    exclude_owner_kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingInterPodAntiAffinity(Selecting):
    """Pods leave a node or zone that their own required anti-affinity forbids by now.

    A conflict with pods that `label_selector` leaves out is not seen.
    """

    NAME: ClassVar = "RemovePodsViolatingInterPodAntiAffinity"


class NodeAffinityType(StrEnum):
    """A kind of node affinity."""

    REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
    PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingNodeAffinity(Selecting):
    """Pods leave a node that no longer meets their node affinity, or meets it less than another.

    Attributes:
        types: of affinity, in the order in which they are looked at.
    """

    NAME: ClassVar = "RemovePodsViolatingNodeAffinity"

    types: tuple[NodeAffinityType, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingNodeTaints(Selecting):
    """Pods leave a node with a taint NoSchedule that they do not tolerate.

    Attributes:
        include_prefer_no_schedule: taints PreferNoSchedule count as well.
        excluded_taints: taints that do not count, as ``key`` or ``key=value``.
        included_taints: the only ones that count; None for all, empty for none.
    """

    NAME: ClassVar = "RemovePodsViolatingNodeTaints"

    include_prefer_no_schedule: bool = False
    excluded_taints: frozenset[str] = frozenset()
    included_taints: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePodsViolatingTopologySpreadConstraint(Selecting):
    """Pods leave zones that have more of them than their spread constraints allow.

    Pods that `label_selector` leaves out are not counted.

    Attributes:
        constraints: values of ``whenUnsatisfiable`` of the constraints that count.
        topology_balance_node_fit: only pods leave that fit in a zone with fewer.
    """

    NAME: ClassVar = "RemovePodsViolatingTopologySpreadConstraint"

    constraints: frozenset[str] = frozenset({"DoNotSchedule"})
    topology_balance_node_fit: bool = True
