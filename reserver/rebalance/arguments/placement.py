"""Strategies for pods whose node violates their constraints or its own."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import msgspec

from reserver.errors import InvalidInput
from reserver.rebalance.arguments.base import (
    ALL,
    Args,
    Choice,
    Problems,
    Selecting,
    among,
    one_choice,
)


class RemoveDuplicates(Args, frozen=True):
    """No two pods of one owner on a node while others have none.

    Attributes:
        namespaces: whose pods are looked at.
        exclude_owner_kinds: pods that have an owner of such a kind stay.
    """

    NAME: ClassVar[str] = "RemoveDuplicates"

    namespaces: Choice = ALL
    exclude_owner_kinds: frozenset[str] = frozenset()

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from one_choice("namespaces", self.namespaces)


class RemovePodsViolatingInterPodAntiAffinity(Selecting, frozen=True):
    """Pods leave a node or zone that their own required anti-affinity forbids by now.

    A conflict with pods that `label_selector` leaves out is not seen.
    """

    NAME: ClassVar[str] = "RemovePodsViolatingInterPodAntiAffinity"


class NodeAffinityType(StrEnum):
    """A kind of node affinity."""

    REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
    PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class RemovePodsViolatingNodeAffinity(Selecting, frozen=True):
    """Pods leave a node that no longer meets their node affinity, or meets it less than another.

    Attributes:
        node_affinity_type: as in the file; upstream ignores unknown values.
    """

    NAME: ClassVar[str] = "RemovePodsViolatingNodeAffinity"

    node_affinity_type: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[NodeAffinityType, ...]:
        """The known kinds of affinity, in the order in which they are looked at."""
        known = set(NodeAffinityType)
        return tuple(NodeAffinityType(each) for each in self.node_affinity_type if each in known)

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        if not self.node_affinity_type:
            remedy = f"write {NodeAffinityType.REQUIRED}"
            yield InvalidInput("nodeAffinityType", "is missing", remedy)
        yield from super().problems()

    def warnings(self) -> Problems:
        """Yield accepted fields that have no effect."""
        yield from among("nodeAffinityType", self.node_affinity_type, NodeAffinityType)


class RemovePodsViolatingNodeTaints(Selecting, frozen=True):
    """Pods leave a node with a taint NoSchedule that they do not tolerate.

    Attributes:
        include_prefer_no_schedule: taints PreferNoSchedule count as well.
        excluded_taints: taints that do not count, as ``key`` or ``key=value``.
        included_taints: the only ones that count; None for all, empty for none.
    """

    NAME: ClassVar[str] = "RemovePodsViolatingNodeTaints"

    include_prefer_no_schedule: bool = False
    excluded_taints: frozenset[str] = frozenset()
    included_taints: frozenset[str] | None = None

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from super().problems()
        if self.excluded_taints and self.included_taints:
            problem = "is given beside excludedTaints"
            yield InvalidInput("includedTaints", problem, "write one of them")


_HARD = frozenset({"DoNotSchedule"})


class RemovePodsViolatingTopologySpreadConstraint(Selecting, frozen=True):
    """Pods leave zones that have more of them than their spread constraints allow.

    Pods that `label_selector` leaves out are not counted.

    Attributes:
        constraints: values of ``whenUnsatisfiable`` of the constraints that count.
        topology_balance_node_fit: only pods leave that fit in a zone with fewer.
    """

    NAME: ClassVar[str] = "RemovePodsViolatingTopologySpreadConstraint"

    constraints: frozenset[str] = _HARD
    topology_balance_node_fit: bool = True

    def __post_init__(self) -> None:
        """Take an empty list for an absent one, as upstream does."""
        if not self.constraints:
            msgspec.structs.force_setattr(self, "constraints", _HARD)

    def problems(self) -> Problems:
        """Yield what upstream refuses, each with its path below ``args``."""
        yield from super().problems()
        yield from among("constraints", self.constraints, ["DoNotSchedule", "ScheduleAnyway"])
