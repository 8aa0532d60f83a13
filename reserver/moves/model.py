"""A move: a pod leaves its node for a seat that is reserved first (docs/adr/0033)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.cluster.pod import NO_CONTROLLER, Controller, PodName
from reserver.moves.phases import ENDED, SURGE_PHASES, MoveMode, MovePhase, MoveReason
from reserver.reservations.placement import ANYWHERE, Placement

DEFAULT_TIMEOUT_S = 600.0
"""The default timeout of a move, in seconds."""

LANDING_S = DEFAULT_TIMEOUT_S
"""Seconds for the landing after an eviction, or the timeout if shorter, so that a pod that is
evicted late does not lose its seat at once."""

_SPARE_S = 600.0
"""Seconds of a seat beyond its deadline: an eviction may be uncertain, or Reserver away."""

MAX_TIMEOUT_S = 24 * 3600.0
"""The longest timeout of a move, in seconds."""

MOST_WINDOW_WAIT_S = 35 * 24 * 3600.0
"""Longest wait of a move for its window, in seconds: windows may be a month apart."""

MOST_IN_A_ROW = 8
"""The longest chain of moves of one pod; a longer one may be a cycle."""

MOST_IN_GROUP = 500
"""The largest group; kubelets run at most a few hundred pods."""

_SEAT_STEM = 200
"""Characters of a move's name in its seat's name; Kubernetes allows 253."""

_COPY_STEM = 54
"""Characters of a controller's name in a copy's name: a pod's name is its hostname, which Linux
limits to 63."""


class MoveGroup(NamedTuple):
    """A group of moves, of which none evicts before all hold a seat; no group if the name is empty.

    If a member fails, so do the members that have not evicted yet. If some members' pods have no
    node, the others make room for them: they wait until that room is held, and not for each other's
    seats.

    Attributes:
        name: the name that the members of a namespace share, or the PodMoveGroup's name.
        size: the number of members: no member begins before all are written. With 1 none waits
            for others: as in a plan, they only fail together.
        across: whether a PodMoveGroup lists the members, in any namespaces.
    """

    name: str = ""
    size: int = 0
    across: bool = False


ALONE = MoveGroup()


class GroupMember(NamedTuple):
    """A PodMove that a PodMoveGroup lists.

    Attributes:
        move: the PodMove.
        uid: the UID of its pod; empty if the pod has yet to come, by the PodMove that this one
            follows.
    """

    move: PodName
    uid: str = ""


Declared = Mapping[str, frozenset[GroupMember]]
"""The members of each PodMoveGroup, by its name. Only clients with rights in all namespaces write
PodMoveGroups: a PodMove's own spec does not make it a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSpec:
    """The spec of a move.

    Attributes:
        pod: namespace and name of the pod.
        uid: the pod's UID; empty for any pod of that name.
        after: the PodMove in the same namespace that this one follows: its replacement is the pod
            to move; empty without one.
        node: the target node; empty if `placement` decides.
        placement: constraints on the target besides the pod's own.
        mode: the precondition of the eviction.
        timeout_s: the timeout, in seconds (`Move.deadline`).
        grace_period_s: the pod's grace period, in seconds; None for its own.
        group: its group.
        paused: no new step begins; the deadline stays.
        urgent: whether it ignores move windows.
        keep_s: seconds that its PodMove stays after its end; None for ever.
    """

    pod: PodName
    uid: str = ""
    after: str = ""
    node: str = ""
    placement: Placement = ANYWHERE
    mode: MoveMode = MoveMode.RESERVE_FIRST
    timeout_s: float = DEFAULT_TIMEOUT_S
    grace_period_s: int | None = None
    group: MoveGroup = ALONE
    paused: bool = False
    urgent: bool = False
    keep_s: int | None = None


class Replacement(NamedTuple):
    """The pod that replaced the moved pod; none yet if the UID is empty."""

    name: str = ""
    uid: str = ""
    node: str = ""


NOBODY = Replacement()


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStatus:
    """The status of a move.

    All but the last three fields are written before effects that follow are executed.

    Attributes:
        phase: the phase.
        reason: the reason of the phase; None before the first step.
        message: the reason in a sentence.
        uid: the UID of the pod to move; empty before the pod was found.
        pod: the pod's name, if the preceding move brought it; else empty.
        found_at: when the preceding move had brought it, unix seconds; else None.
        opens_at: the opening of the window that it waits for, unix seconds; else None.
        opened_at: when that window had opened, unix seconds; else None.
        controller: the controller that replaces the pod.
        source: the pod's node; empty if it had none at the move's turn.
        target: the node of the seat, or of the landed replacement.
        seat: the name of the Reservation that is the seat; empty without one.
        replacement: the pod that has replaced the moved pod, or the copy that will.
        fallback: why the pod cannot surge, so that it is evicted; empty if not so.
        fell_back_at: when that was found, unix seconds; else None.
        surged_at: the turn to start a copy, unix seconds; None before.
        handed_at: when the copy was ready to be handed over, unix seconds; None before.
        started_at: the turn of the move, unix seconds; None before.
        evicted_at: when the pod's deletion was observed, unix seconds; None before.
        finished_at: the end, unix seconds; None before.
        retry_at: earliest retry of a refused request, unix seconds. Not written: after a restart
            the retry is immediate.
        attempts: the number of refusals in a row. Not written.
        attended_since: since when this process decides (`Attendance`), unix seconds. Not written.
    """

    phase: MovePhase = MovePhase.PENDING
    reason: MoveReason | None = None
    message: str = ""
    uid: str = ""
    pod: str = ""
    found_at: float | None = None
    opens_at: float | None = None
    opened_at: float | None = None
    controller: Controller = NO_CONTROLLER
    source: str = ""
    target: str = ""
    seat: str = ""
    replacement: Replacement = NOBODY
    fallback: str = ""
    fell_back_at: float | None = None
    surged_at: float | None = None
    handed_at: float | None = None
    started_at: float | None = None
    evicted_at: float | None = None
    finished_at: float | None = None
    retry_at: float = field(default=0.0, compare=False)
    attempts: int = field(default=0, compare=False)
    attended_since: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move: the spec and the status of a PodMove.

    Attributes:
        name: namespace and name of the PodMove; its pod is in the same namespace.
        uid: the PodMove's UID.
        created_at: the creation, unix seconds.
        spec: the spec.
        status: the status.
    """

    name: PodName
    uid: str
    created_at: float
    spec: MoveSpec
    status: MoveStatus = MoveStatus()

    @property
    def deadline(self) -> float:
        """The time at which it ends at the latest, unix seconds.

        The timeout starts when the window has opened or, for a move that follows another, when its
        pod has come; the wait for the pod is limited to the longest timeout. After the eviction, or
        once a copy is ready, there are at least `_landing_s` seconds to land. An evicted pod has
        them from the return of Reserver: nobody can land without it.
        """
        if self.status.opens_at is not None:
            return self.created_at + MOST_WINDOW_WAIT_S
        if self.awaits_first:
            return self.created_at + MAX_TIMEOUT_S
        left_at, status = self.status.handed_at or 0.0, self.status
        if status.evicted_at is not None:
            left_at = max(status.evicted_at, status.attended_since)
        return max(self._due, left_at + self._landing_s)

    @property
    def seat_until(self) -> float:
        """The expiry of its seat, unix seconds; later if written again for an evicted pod."""
        since = max(self._due, self.status.evicted_at or 0.0, self.status.attended_since)
        return since + self._landing_s + _SPARE_S

    @property
    def order(self) -> tuple[float, str, str]:
        """The sort key of moves in the order of their plan, over all namespaces.

        creationTimestamp has seconds only, so the names of a plan's moves are in its order.
        """
        return self.created_at, self.name.name, self.name.namespace

    @property
    def _due(self) -> float:
        status = self.status
        since = max(self.created_at, status.found_at or 0.0, status.opened_at or 0.0)
        return since + self.spec.timeout_s

    @property
    def _landing_s(self) -> float:
        return min(self.spec.timeout_s, LANDING_S)

    @property
    def awaits_first(self) -> bool:
        """Whether its pod has yet to come, by the move that it follows."""
        return bool(self.spec.after) and not self.status.pod

    @property
    def pod(self) -> PodName:
        """The pod to move; before it has come, the pod of the preceding move."""
        name = self.status.pod
        return PodName(self.name.namespace, name) if name else self.spec.pod

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status.phase in ENDED

    @property
    def gives_way(self) -> bool:
        """Whether an urgent move of the same pod takes its place, as it may wait for weeks."""
        if self.spec.urgent or self.status.phase is not MovePhase.PENDING:
            return False
        return self.spec.paused or self.status.reason is MoveReason.WAITS_FOR_WINDOW

    @property
    def is_planned(self) -> bool:
        """Whether it is part of a plan, which fixes its pod and its node."""
        is_exact = self.spec.uid or self.spec.after
        return bool(is_exact and self.spec.node) and self.spec.group != ALONE

    @property
    def is_entering(self) -> bool:
        """Whether its pod had no node at the move's turn, so that it is not evicted."""
        return bool(self.status.uid) and not self.status.source

    @property
    def is_surging(self) -> bool:
        """Whether a copy of its pod has to be ready before the pod is removed."""
        return self.spec.mode is MoveMode.SURGE_FIRST and not self.status.fallback

    @property
    def may_have_copy(self) -> bool:
        """Whether a copy of its pod may exist."""
        return self.status.phase in SURGE_PHASES and self.status.surged_at is not None

    @property
    def copy_name(self) -> str:
        """The constant name of its pod's copy."""
        return f"{self.status.controller.name[:_COPY_STEM].rstrip('-.')}-{self.uid[:8]}"

    @property
    def seat_name(self) -> str:
        """The constant name of its seat."""
        return f"{self.name.name[:_SEAT_STEM].rstrip('-.')}-{self.uid[:8]}"
