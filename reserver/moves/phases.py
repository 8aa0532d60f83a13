"""The modes and phases of a move, and the reasons why it is in its phase."""

from __future__ import annotations

from enum import StrEnum


class MoveMode(StrEnum):
    """The precondition of an eviction."""

    RESERVE_FIRST = "ReserveFirst"
    """A seat that is held, on a node that has the room."""

    SURGE_FIRST = "SurgeFirst"
    """A copy of the pod that is ready on the seat, and is then its replacement (docs/adr/0085)."""

    EVICT_ONLY = "EvictOnly"
    """Nothing: the replacement lands wherever kube-scheduler finds room."""


class MovePhase(StrEnum):
    """The phase of a move."""

    PENDING = "Pending"
    """It waits for its turn."""

    RESERVING = "Reserving"
    """Its seat is being written, placed and backed."""

    EVICTING = "Evicting"
    """The pod is to be evicted as soon as budgets, its group and its turn allow."""

    SURGING = "Surging"
    """A copy of the pod is started on the seat, and is to be ready."""

    HANDING_OVER = "HandingOver"
    """The ReplicaSet is given the copy, and removes the pod."""

    LANDING = "Landing"
    """The pod leaves; its replacement is on its way to the seat."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    """It could not be done."""

    ABORTED = "Aborted"
    """It was no longer to be done, and nothing was evicted for it."""


SURGE_PHASES = frozenset({MovePhase.SURGING, MovePhase.HANDING_OVER})
"""The phases in which there may be a copy of the pod."""

ENDED = frozenset({MovePhase.SUCCEEDED, MovePhase.FAILED, MovePhase.ABORTED})


class MoveReason(StrEnum):
    """Why a move is in its phase: one word for machines."""

    # It waits.
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
    # It succeeded.
    LANDED = "Landed"
    LANDED_ELSEWHERE = "LandedElsewhere"
    NOT_REPLACED = "NotReplaced"
    # It failed.
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
    # It was aborted.
    POD_GONE = "PodGone"
    POD_FINISHED = "PodFinished"
    MOVED_ALREADY = "MovedAlready"
    NOT_NEEDED = "NotNeeded"
    NOTHING_TO_FOLLOW = "NothingToFollow"
