"""The modes, phases and reasons of moves."""

from __future__ import annotations

from enum import StrEnum


class MoveMode(StrEnum):
    """The precondition of an eviction."""

    RESERVE_FIRST = "ReserveFirst"
    """A held seat on a node that has the room."""

    SURGE_FIRST = "SurgeFirst"
    """A ready copy of the pod on the seat, which becomes its replacement (docs/adr/0085)."""

    EVICT_ONLY = "EvictOnly"
    """None: the replacement lands wherever kube-scheduler finds room."""


class MovePhase(StrEnum):
    """The phase of a move."""

    PENDING = "Pending"
    """The move waits for its turn."""

    RESERVING = "Reserving"
    """The seat is being written, placed and backed."""

    EVICTING = "Evicting"
    """The pod will be evicted once budgets, the group and the turn allow."""

    SURGING = "Surging"
    """A copy of the pod is started on the seat, and has to become ready."""

    HANDING_OVER = "HandingOver"
    """The ReplicaSet gets the copy, and removes the pod."""

    LANDING = "Landing"
    """The pod leaves; its replacement is on its way to the seat."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    """The move was not possible."""

    ABORTED = "Aborted"
    """The move was no longer needed, and nothing was evicted."""


SURGE_PHASES = frozenset({MovePhase.SURGING, MovePhase.HANDING_OVER})
"""The phases in which a copy of the pod may exist."""

ENDED = frozenset({MovePhase.SUCCEEDED, MovePhase.FAILED, MovePhase.ABORTED})


class MoveReason(StrEnum):
    """The reason of a move's phase, as one word for machines."""

    # The move waits.
    WAITS_FOR_TURN = "WaitsForTurn"
    PAUSED = "Paused"
    WAITS_FOR_WINDOW = "WaitsForWindow"
    WAITS_FOR_SEAT = "WaitsForSeat"
    WAITS_FOR_GROUP = "WaitsForGroup"
    WAITS_FOR_MOVE = "WaitsForMove"
    BUDGET_BLOCKS = "BudgetBlocks"
    EVICTION_RETRIED = "EvictionRetried"
    READY_TO_EVICT = "ReadyToEvict"
    WAITS_FOR_REPLACEMENT = "WaitsForReplacement"
    SEAT_LOST = "SeatLost"
    WAITS_FOR_POD = "WaitsForPod"
    STARTS_COPY = "StartsCopy"
    WAITS_FOR_COPY = "WaitsForCopy"
    WAITS_FOR_OTHERS = "WaitsForOthers"
    WAITS_FOR_REMOVAL = "WaitsForRemoval"
    # The move succeeded.
    LANDED = "Landed"
    LANDED_ELSEWHERE = "LandedElsewhere"
    NOT_REPLACED = "NotReplaced"
    # The move failed.
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    NO_CONTROLLER = "NoController"
    NOT_MOVABLE = "NotMovable"
    TOO_MANY_WAIT = "TooManyWait"
    SEAT_REFUSED = "SeatRefused"
    SEAT_IMPOSSIBLE = "SeatImpossible"
    EVICTION_REFUSED = "EvictionRefused"
    COPY_LOST = "CopyLost"
    SURGE_OVERTAKEN = "SurgeOvertaken"
    HANDOVER_REFUSED = "HandoverRefused"
    GROUP_FAILED = "GroupFailed"
    PLAN_OUTDATED = "PlanOutdated"
    INVALID_SPEC = "InvalidSpec"
    # The move was aborted.
    POD_GONE = "PodGone"
    POD_FINISHED = "PodFinished"
    MOVED_ALREADY = "MovedAlready"
    NOT_NEEDED = "NotNeeded"
    NOTHING_TO_FOLLOW = "NothingToFollow"
