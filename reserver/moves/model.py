"""A move: a pod is to leave its node, and has a seat before it does (docs/adr/0033)."""

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
"""The least time for the landing after the eviction, in seconds; a shorter timeout is the limit. A
pod that is evicted late does not lose its seat at once."""

_IN_DOUBT_S = 60.0
"""The longest time after its deadline during which an eviction may be uncertain, in seconds."""

MAX_TIMEOUT_S = 24 * 3600.0
"""The longest timeout of a move, in seconds."""

MOST_WINDOW_WAIT_S = 35 * 24 * 3600.0
"""How long a move may wait for its window, in seconds: windows may be a month apart."""

MOST_IN_A_ROW = 8
"""The longest chain of moves of one pod; a longer one may be a circle."""

MOST_IN_GROUP = 500
"""The largest group; kubelets run at most a few hundred pods."""

_SEAT_STEM = 200
"""The characters of a move's name that its seat's name has; Kubernetes allows 253."""

_COPY_STEM = 54
"""The characters of a controller's name that a copy's name has: the name of a pod is its hostname,
which Linux bounds to 63."""


class MoveGroup(NamedTuple):
    """Moves of which none evicts before all hold a seat; without a name there is none.

    If one fails, so do those that have not evicted yet. If some are of pods without a node, the
    others make room for those: they wait until that is held, and not for each other's seats.

    Attributes:
        name: what its members have in common: those of one namespace, or those that the
            PodMoveGroup of this name lists.
        size: how many they are: before there are so many, none begins. With 1 none waits for
            others: like the moves of a plan they only fail together.
        across: its members are those that the PodMoveGroup lists, in whichever namespaces.
    """

    name: str = ""
    size: int = 0
    across: bool = False


ALONE = MoveGroup()


class GroupMember(NamedTuple):
    """A PodMove that a PodMoveGroup lists.

    Attributes:
        move: the PodMove.
        uid: of the pod that it moves; empty if that has yet to come, with the PodMove that this one
            follows.
    """

    move: PodName
    uid: str = ""


Declared = Mapping[str, frozenset[GroupMember]]
"""The members of each PodMoveGroup, by its name. Only who is trusted with all namespaces writes
those: what a PodMove says of itself makes it no member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSpec:
    """The spec of a move.

    Attributes:
        uid: tells it from another one of that name; empty for the one that is there.
        after: the PodMove, in its namespace, that moves the pod first: it is the replacement of
            that one which is to leave; empty if it follows none.
        node: where its replacement is to land; empty where `placement` says it.
        placement: where it may land, beside what the pod demands itself.
        mode: what has to be there before the eviction.
        timeout_s: how long it may take, in seconds (`Move.deadline`).
        grace_period_s: what the pod gets to end, in seconds; None for its own.
        group: the moves that evict only together with it.
        paused: nothing new is begun for it; its deadline stays.
        urgent: it waits for no window.
        keep_s: how long its PodMove is kept after its end, in seconds; None for ever.
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
    """The pod that came after the one that left; without a UID there is none yet."""

    name: str = ""
    uid: str = ""
    node: str = ""


NOBODY = Replacement()


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStatus:
    """The status of a move.

    All but `retry_at` is written before anything that follows from it is done.

    Attributes:
        phase: how far it is.
        reason: why it is there; None before anybody has looked.
        message: the same in a sentence.
        uid: of the pod that leaves; empty before it was found.
        pod: its name, if it has come with the move that this one follows; else empty.
        found_at: when it had come, unix seconds; else None.
        opens_at: when its window opens that it waits for, unix seconds; None if it waits for none.
        opened_at: when its window had opened that it waited for, unix seconds; else None.
        controller: what will replace the pod.
        source: the node that the pod leaves; empty if it had none when the move had its turn.
        target: the node of the seat, or where the replacement has landed.
        seat: the name of the Reservation that is the seat; empty if it has none.
        replacement: the pod that has come after it, or the copy that is to.
        fallback: why its pod cannot surge, so that it is evicted; empty if it can.
        fell_back_at: when that was found, unix seconds; else None.
        surged_at: when it was its turn to start a copy, unix seconds; None before.
        handed_at: when the copy was ready to be handed over, unix seconds; None before.
        started_at: when it had its turn, unix seconds; None before.
        evicted_at: when the pod was seen to leave, unix seconds; None before.
        finished_at: when it ended, unix seconds; None before.
        retry_at: before this nothing is sent again that was refused, unix seconds. Not written:
            after a restart it is tried at once.
        attempts: how often in a row it was refused. Not written.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move: a PodMove and what became of it.

    Attributes:
        name: namespace and name of the PodMove; its pod is in the same namespace.
        uid: tells the PodMove from another one of that name.
        created_at: when it was created, unix seconds.
        spec: what is wanted.
        status: what became of it.
    """

    name: PodName
    uid: str
    created_at: float
    spec: MoveSpec
    status: MoveStatus = MoveStatus()

    @property
    def deadline(self) -> float:
        """When it ends whatever happens, unix seconds.

        One that follows another has its time once its pod has come, which it awaits for as long as
        a move may take. So has one once its window opens. Once its pod has left, or is to be
        removed because its copy is ready, there is time to land.
        """
        if self.status.opens_at is not None:
            return self.created_at + MOST_WINDOW_WAIT_S
        if self.awaits_first:
            return self.created_at + MAX_TIMEOUT_S
        left_at = self.status.evicted_at or self.status.handed_at
        return max(self._due, self._due if left_at is None else left_at + self._landing_s)

    @property
    def seat_until(self) -> float:
        """When its seat ends even if nobody releases it, unix seconds: not before the deadline."""
        return self._due + self._landing_s + _IN_DOUBT_S

    @property
    def order(self) -> tuple[float, str, str]:
        """What puts moves in the order of their plan, in whichever namespaces they are.

        The API server tells seconds only: the moves of one plan are named in its order.
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
        """Whether its pod has yet to come, with the move that it follows."""
        return bool(self.spec.after) and not self.status.pod

    @property
    def pod(self) -> PodName:
        """The pod that is to leave; while that has yet to come, the one that it comes after."""
        name = self.status.pod
        return PodName(self.name.namespace, name) if name else self.spec.pod

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status.phase in ENDED

    @property
    def gives_way(self) -> bool:
        """Whether an urgent move of its pod takes its place: it may stand still for weeks."""
        if self.spec.urgent or self.status.phase is not MovePhase.PENDING:
            return False
        return self.spec.paused or self.status.reason is MoveReason.WAITS_FOR_WINDOW

    @property
    def is_planned(self) -> bool:
        """Whether it is part of a plan, which says which pod goes where before it has its turn."""
        is_exact = self.spec.uid or self.spec.after
        return bool(is_exact and self.spec.node) and self.spec.group != ALONE

    @property
    def is_entering(self) -> bool:
        """Whether its pod had no node when it had its turn: it leaves none, and is not evicted."""
        return bool(self.status.uid) and not self.status.source

    @property
    def is_surging(self) -> bool:
        """Whether a copy of its pod is to be ready before that is removed."""
        return self.spec.mode is MoveMode.SURGE_FIRST and not self.status.fallback

    @property
    def may_have_copy(self) -> bool:
        """Whether a copy of its pod may be there."""
        return self.status.phase in SURGE_PHASES and self.status.surged_at is not None

    @property
    def copy_name(self) -> str:
        """The name of the copy of its pod, the same whenever it is asked for."""
        return f"{self.status.controller.name[:_COPY_STEM].rstrip('-.')}-{self.uid[:8]}"

    @property
    def seat_name(self) -> str:
        """The name of its seat, the same whenever it is asked for."""
        return f"{self.name.name[:_SEAT_STEM].rstrip('-.')}-{self.uid[:8]}"
