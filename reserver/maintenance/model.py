"""A maintenance window: nodes that have to be empty from a start to an end, and their progress.

A window takes a node *in hand* when it cordons the node to empty it.
"""

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
"""Default of `drainBefore`: seconds from the first drain to the start of a window."""

MOST_DRAIN_S = 7 * 24 * 3600.0
"""Greatest `drainBefore`, in seconds."""

MOST_LENGTH_S = 30 * 24 * 3600.0
"""Longest window, in seconds."""

PLANNED_AHEAD_S = 24 * 3600.0
"""Seconds before the drain from which a window's nodes are closed for holds that would overlap it.
If that had no limit, a hold without an end would avoid each node that has a window in a year."""

REASON = "MaintenanceWindow"
"""The reason of the conditions that Reserver writes; other controllers write other reasons."""

PLANNED, DRAINING, DRAINED, IN_PROGRESS = LIFECYCLE


class WindowUse(StrEnum):
    """A window's record on a node, in the node's annotation."""

    CORDONED = "cordoned"
    FOUND_CORDONED = "found-cordoned"
    """Another client cordoned the node before the window did, and has to uncordon it."""
    DONE = "done"
    """A client has uncordoned the node since: its maintenance is over."""


class NodePhase(StrEnum):
    """The phase of a node in a window."""

    PLANNED = "Planned"
    WAITING = "Waiting"
    """Too many other nodes are unavailable."""
    DRAINING = "Draining"
    DRAINED = "Drained"
    IN_MAINTENANCE = "InMaintenance"
    DONE = "Done"


class WindowPhase(StrEnum):
    """The phase of a window."""

    PLANNED = "Planned"
    DRAINING = "Draining"
    """Reserver empties the nodes; the window has not started."""
    ACTIVE = "Active"
    OVER = "Over"
    INVALID = "Invalid"


class MaintenancePeriod(NamedTuple):
    """Start and end of a maintenance, unix seconds."""

    start: float
    end: float


class MostUnavailable(NamedTuple):
    """The most nodes of a window that may be unavailable at a time.

    Attributes:
        number: nodes, or percent of the window's nodes.
        is_percent: `number` is a percentage.
    """

    number: int
    is_percent: bool = False

    def of(self, nodes: int) -> int:
        """Return the limit for a window of `nodes` nodes: 1 at least."""
        return max(1, nodes * self.number // 100 if self.is_percent else self.number)


ONE = MostUnavailable(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A MaintenanceWindow.

    Attributes:
        uid: distinguishes the window from an earlier window of the same name.
        nodes: the names of nodes.
        selector: selects further nodes.
        period: start and end; with a schedule, one of its occurrences.
        schedule: the recurrence; None for a window that does not recur.
        drain_s: seconds from the first drain to the start.
        most_unavailable: the most nodes that may be unavailable at a time.
        surges: moves start a copy of a pod on its seat before the eviction, where possible.
        allows_unseated: from the start on, evict pods without a seat.
        deletes_empty_dirs: move pods with emptyDir volumes, which deletes their data.
        key: the identity of this occurrence: the window's UID and the start.
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
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the key once: a decision looks it up on every node."""
        object.__setattr__(self, "key", f"{self.uid}.{int(self.period.start)}")

    def at(self, now: float) -> Window:
        """Return the window with its occurrence at `now` (unix seconds), or its next occurrence.

        After the last occurrence the window is returned unchanged.
        """
        found = self.schedule.occurrence(now) if self.schedule else None
        return replace(self, period=MaintenancePeriod(*found)) if found else self

    def has(self, name: str, labels: Labels) -> bool:
        """Return whether the window selects a node."""
        return name in self.nodes or self.selector.matches(labels)

    @property
    def drain_at(self) -> float:
        """The start of the drain, unix seconds."""
        return self.period.start - self.drain_s


Uses = Mapping[str, WindowUse]
"""The windows' records on a node, by key. Only one window has the node in hand: all other records
are DONE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNode:
    """The fields of a node that maintenance decides on.

    Attributes:
        is_cordoned: ``spec.unschedulable``.
        uses: the windows' records on the node.
        conditions: Ready and the maintenance conditions, by type.
        not_ready_since: last transition to not ready, unix seconds; None while ready or unknown.
        drain: the decision on each pod; None until the pods were read after the cordon.
    """

    name: str
    is_cordoned: bool = False
    uses: Uses = field(default_factory=dict)
    conditions: Mapping[str, NodeCondition] = field(default_factory=dict)
    not_ready_since: float | None = None
    drain: Drain | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the Ready condition is true, or absent."""
        return READY not in self.conditions or self.conditions[READY].status == "True"

    @property
    def is_maintained_by_others(self) -> bool:
        """Whether another controller set a maintenance condition to true."""
        return any(
            kind in LIFECYCLE and each.status == "True" and each.reason != REASON
            for kind, each in self.conditions.items()
        )

    @property
    def is_marked(self) -> bool:
        """Whether the node has a record or a condition of a window, perhaps from before a crash."""
        return bool(self.uses) or any(
            kind in LIFECYCLE and each.reason == REASON for kind, each in self.conditions.items()
        )

    @property
    def holder(self) -> str:
        """The key of the window that has the node in hand; empty without one."""
        return holder_of(self.uses)


def holder_of(uses: Uses) -> str:
    """Return the key of the window that has a node in hand; empty without one."""
    return next((key for key, use in uses.items() if use is not WindowUse.DONE), "")


def read_uses(node: Node) -> dict[str, WindowUse]:
    """Return the windows' records on a node; invalid parts of its annotation are ignored."""
    known, uses = {each.value for each in WindowUse}, {}
    for part in node.maintenance.split():
        use, _, key = part.partition(":")
        if use in known and key:
            uses[key] = WindowUse(use)
    return uses


def show_uses(uses: Uses) -> str:
    """Return the annotation for the windows' records on a node."""
    return " ".join(f"{use}:{key}" for key, use in sorted(uses.items()))
