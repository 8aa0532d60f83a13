"""A maintenance window: nodes are to be empty from a start to an end, and how far each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from reserver.base.schedule import Schedule
from reserver.cluster.labels import NOTHING, Labels, Selector
from reserver.cluster.node import LIFECYCLE, READY, Node, NodeCondition
from reserver.moves.drain import Drain

DEFAULT_DRAIN_S = 3600.0
"""How long before its start a window begins to empty its nodes, in seconds."""

MOST_DRAIN_S = 7 * 24 * 3600.0
"""How long before its start a window may begin to, in seconds."""

MOST_LENGTH_S = 30 * 24 * 3600.0
"""How long a window may last, in seconds."""

PLANNED_AHEAD_S = 24 * 3600.0
"""How long before the drain a window closes its nodes for holds that would overlap it, in seconds:
a hold without an end would find no place in a cluster with a window in a year."""

REASON = "MaintenanceWindow"
"""The reason of the conditions that Reserver writes; those of others have another one."""

PLANNED, DRAINING, DRAINED, IN_PROGRESS = LIFECYCLE


class WindowUse(StrEnum):
    """What a window has done with a node, as the node's annotation says."""

    CORDONED = "cordoned"
    FOUND_CORDONED = "found-cordoned"
    """Somebody else had cordoned it, and is to uncordon it."""
    DONE = "done"
    """Somebody has uncordoned it since: its maintenance is over."""


class NodePhase(StrEnum):
    """How far a window is with a node."""

    PLANNED = "Planned"
    WAITING = "Waiting"
    """Too many other nodes are unavailable."""
    DRAINING = "Draining"
    DRAINED = "Drained"
    IN_MAINTENANCE = "InMaintenance"
    DONE = "Done"


class WindowPhase(StrEnum):
    """How far a window is."""

    PLANNED = "Planned"
    DRAINING = "Draining"
    """Its nodes are emptied; it has not started."""
    ACTIVE = "Active"
    OVER = "Over"
    INVALID = "Invalid"


class MaintenancePeriod(NamedTuple):
    """When a maintenance is: unix seconds."""

    start: float
    end: float


class MostUnavailable(NamedTuple):
    """How many nodes of a window may be unavailable at a time.

    Attributes:
        number: of nodes, or of hundredths of them.
        is_percent: it is of hundredths.
    """

    number: int
    is_percent: bool = False

    def of(self, nodes: int) -> int:
        """Return how many that is of so many nodes: one at least."""
        return max(1, nodes * self.number // 100 if self.is_percent else self.number)


ONE = MostUnavailable(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A MaintenanceWindow.

    Attributes:
        uid: tells it from an earlier one of the same name.
        selector: selects further nodes.
        period: when it is; of a schedule that has begun to count, one of its occurrences.
        schedule: when it recurs; None for one that does not.
        drain_s: how long before its start its nodes are emptied, in seconds.
        most_unavailable: how many of its nodes may be unavailable at a time.
        surges: a copy of each pod is ready on its seat before the pod goes, where it can be.
        allows_unseated: from the start on pods are evicted without a seat.
        deletes_empty_dirs: pods with emptyDir volumes are moved, whose data is lost.
    """

    name: str
    uid: str
    period: MaintenancePeriod
    schedule: Schedule | None = None
    nodes: frozenset[str] = frozenset()
    selector: Selector = NOTHING
    drain_s: float = DEFAULT_DRAIN_S
    most_unavailable: MostUnavailable = ONE
    surges: bool = False
    allows_unseated: bool = False
    deletes_empty_dirs: bool = False

    def at(self, now: float) -> Window:
        """Return it with the occurrence under way at `now` (unix seconds), or the next one.

        After the last one it stays as it is.
        """
        found = self.schedule.occurrence(now) if self.schedule else None
        return replace(self, period=MaintenancePeriod(*found)) if found else self

    def has(self, name: str, labels: Labels) -> bool:
        """Return whether a node is one of its nodes."""
        return name in self.nodes or self.selector.matches(labels)

    @property
    def drain_at(self) -> float:
        """When its nodes begin to be emptied, unix seconds."""
        return self.period.start - self.drain_s

    @property
    def key(self) -> str:
        """What tells this maintenance from others of the same window."""
        return f"{self.uid}.{int(self.period.start)}"


Uses = Mapping[str, WindowUse]
"""What windows have done with a node, by their keys. One has it in hand: all others are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNode:
    """A node, as far as its maintenance is concerned.

    Attributes:
        is_cordoned: its ``spec.unschedulable``.
        uses: what windows have done with it.
        conditions: by type: whether it is ready, and those of its maintenance.
        not_ready_since: since when it is not ready, unix seconds; None while it is.
        drain: what becomes of its pods; None where nobody has looked since it was cordoned.
    """

    name: str
    is_cordoned: bool = False
    uses: Uses = field(default_factory=dict)
    conditions: Mapping[str, NodeCondition] = field(default_factory=dict)
    not_ready_since: float | None = None
    drain: Drain | None = None

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet reports, and is well, as far as is known."""
        return READY not in self.conditions or self.conditions[READY].status == "True"

    @property
    def is_maintained_by_others(self) -> bool:
        """Whether others than Reserver say that it is maintained, or about to be."""
        return any(
            kind in LIFECYCLE and each.status == "True" and each.reason != REASON
            for kind, each in self.conditions.items()
        )

    @property
    def is_marked(self) -> bool:
        """Whether anything on it was written for a window: perhaps before a crash."""
        return bool(self.uses) or any(
            kind in LIFECYCLE and each.reason == REASON for kind, each in self.conditions.items()
        )

    @property
    def holder(self) -> str:
        """The key of the window that has it in hand; empty if none has."""
        return next((key for key, use in self.uses.items() if use is not WindowUse.DONE), "")


def read_uses(node: Node) -> dict[str, WindowUse]:
    """Return what windows have done with a node; what its annotation says otherwise is ignored."""
    known, uses = {each.value for each in WindowUse}, {}
    for part in node.maintenance.split():
        use, _, key = part.partition(":")
        if use in known and key:
            uses[key] = WindowUse(use)
    return uses


def show_uses(uses: Uses) -> str:
    """Return what windows have done with a node as its annotation."""
    return " ".join(f"{use}:{key}" for key, use in sorted(uses.items()))
