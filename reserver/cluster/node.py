"""A node, with the fields that scheduling needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reserver.cluster.constraints import Taint
from reserver.cluster.labels import Labels

HOSTNAME = "kubernetes.io/hostname"
"""The label whose value is a node's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, as far as placing pods on it is concerned.

    Attributes:
        name: ``metadata.name``.
        allocatable: ``status.allocatable``: millicores of cpu, base units of all else.
        labels: ``metadata.labels``.
        taints: all but those with the effect PreferNoSchedule.
        unschedulable: it is cordoned.
        is_kept: Reserver keeps autoscalers from removing it.
    """

    name: str
    allocatable: Mapping[str, int] = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    is_kept: bool = False
