"""The modes and phases of a move, and the reasons why it is in its phase."""

from __future__ import annotations

from enum import StrEnum


class MoveMode(StrEnum):
    """The precondition of an eviction."""

    RESERVE_FIRST = "ReserveFirst"
    """A seat that is held, on a node that has the room."""

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

    LANDING = "Landing"
    """The pod leaves; its replacement is on its way to the seat."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    """It could not be done."""

    ABORTED = "Aborted"
    """It was no longer to be done, and nothing was evicted for it."""


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
    GROUP_FAILED = "GroupFailed"
    PLAN_OUTDATED = "PlanOutdated"
    # It was aborted.
    POD_GONE = "PodGone"
    POD_FINISHED = "PodFinished"
    MOVED_ALREADY = "MovedAlready"
    NOT_NEEDED = "NotNeeded"
    NOTHING_TO_FOLLOW = "NothingToFollow"
