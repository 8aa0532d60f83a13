"""The observation that a step of a move is decided on: pod, seat, replacement, answers.

A move is decided on the observation, not on earlier requests: after a crash, or on another leader,
the same observation leads to the same step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from typing import Any, NamedTuple

from reserver.cluster.pod import NO_CONTROLLER, Controller
from reserver.moves.model import NOBODY, Replacement
from reserver.moves.phases import MovePhase


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """The pod to move.

    Attributes:
        uid: its UID.
        node: its node; empty while pending.
        controller: the controller that replaces it.
        requests: its requests, in millicores of cpu and base units of all others.
        volume_claims: the names of its PersistentVolumeClaims that are not ephemeral.
        is_leaving: it has a deletionTimestamp.
        is_finished: it has succeeded or failed.
        is_mirror: it is a mirror pod.
    """

    uid: str
    node: str
    name: str = ""
    controller: Controller = NO_CONTROLLER
    requests: Mapping[str, int] = field(default_factory=dict)
    volume_claims: tuple[str, ...] = ()
    is_leaving: bool = False
    is_finished: bool = False
    is_mirror: bool = False


class ObservedMove(NamedTuple):
    """The move that another one follows.

    Attributes:
        phase: its phase.
        reason: the reason of its phase.
        came: the pod that it has brought to its node; `NOBODY` before.
        problem: why it never brings the awaited pod; empty if it may.
    """

    phase: MovePhase
    reason: str = ""
    came: Replacement = NOBODY
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSeat:
    """The Reservation that is the seat, as the store and the ledger show it.

    Attributes:
        is_foreign: the Reservation of that name does not belong to this move.
        node: its node; empty without a place.
        is_backed: it holds, its node has the room, and its place is written.
        is_claimed: its slot is claimed.
        obstacle: why it has no place, no other place or is not backed, in words; may be empty.
        closed: why its node refuses the pod for now, so that it waits or moves; empty if not so.
        impossible: why it will never be usable, such as a missing node or an untolerated taint;
            empty if it may be.
        refused: why its namespace's quotas would refuse it even alone; empty if not so.
    """

    is_foreign: bool = False
    node: str = ""
    is_backed: bool = False
    is_claimed: bool = False
    obstacle: str = ""
    closed: str = ""
    impossible: str = ""
    refused: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether its pod could land on it now."""
        return self.is_backed and not (self.closed or self.impossible)

    @property
    def problem(self) -> str:
        """Why its pod could not land on it now, in words; empty if it could."""
        return "; ".join(filter(None, (self.impossible or self.closed, self.obstacle)))


class ObservedCopy(NamedTuple):
    """The copy of the pod, as read from the API server.

    Attributes:
        uid: its UID.
        name: its name.
        revision: its resourceVersion, the precondition of the handover.
        node: its node; empty while pending.
        claims: the identities of the reservations that its binding claimed.
        is_foreign: the pod of that name is not the copy of this move.
        is_ready: it has been ready for the ReplicaSet's `minReadySeconds`.
        is_leaving: it is being deleted, or has finished.
        is_handed_over: its ReplicaSet is its controller.
        said: why it is not ready, in words; may be empty.
    """

    name: str
    uid: str
    revision: str = ""
    node: str = ""
    claims: frozenset[str] = frozenset()
    is_foreign: bool = False
    is_ready: bool = False
    is_leaving: bool = False
    is_handed_over: bool = False
    said: str = ""


class ObservedOriginal(NamedTuple):
    """The pod that the ReplicaSet has to remove, as read from the API server.

    Attributes:
        revision: its resourceVersion.
        cost: its ``controller.kubernetes.io/pod-deletion-cost``; may be empty.
        is_marked: this move has given it the lowest cost.
        is_ready: it is ready.
    """

    revision: str = ""
    cost: str = ""
    is_marked: bool = False
    is_ready: bool = False


NOT_SEEN = ObservedOriginal()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSurge:
    """The workload of a surging pod, read from the API server for this step.

    Attributes:
        unfit: why the pod cannot surge, in words; empty if it can.
        is_wanted: its ReplicaSet exists and wants pods.
        others: why its ReplicaSet might remove another pod, in words; empty if it would not.
        copy: the pod of the copy's name; None without one.
        leaving: the pod to move, while it exists.
        template: the pod template of the ReplicaSet.
        withheld: the labels that the copy gets only when it is handed over.
        owner: the ReplicaSet, as an entry of ``ownerReferences``.
    """

    unfit: str = ""
    is_wanted: bool = True
    others: str = ""
    copy: ObservedCopy | None = None
    leaving: ObservedOriginal = NOT_SEEN
    template: Mapping[str, Any] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)
    owner: Mapping[str, object] = field(default_factory=dict)


class MoveTurn(NamedTuple):
    """The turn that arbitration gives a move (`arbitration.arbitrate`).

    Attributes:
        may_begin: it may begin: take its seat or, without one, evict.
        may_evict: all members of its group hold their seats, and limits allow one more eviction.
        why: what it waits for, in words; may be empty.
        is_blocked: it waits for a PodDisruptionBudget.
        waits_for_group: it waits for members of its group.
        opens_at: the opening of the window that it waits for, unix seconds; 0 without one, or if
            unknown.
        closes_at: the end of this turn, unix seconds.
        waits_for_window: it waits for a window.
    """

    may_begin: bool = True
    may_evict: bool = True
    why: str = ""
    is_blocked: bool = False
    waits_for_group: bool = False
    opens_at: float = 0.0
    closes_at: float = inf
    waits_for_window: bool = False


GO = MoveTurn()


class EffectAnswer(Enum):
    """The API server's answer to an effect of the step before."""

    EVICTED = auto()
    """The eviction was accepted."""

    BLOCKED = auto()
    """A PodDisruptionBudget does not allow the eviction now (429)."""

    UNSURE = auto()
    """No answer, or an ambiguous one: the request may have been executed."""

    EVICTION_REFUSED = auto()
    """The eviction is refused: it is forbidden, has two budgets, or by a webhook."""

    SEAT_REFUSED = auto()
    """The seat is refused: forbidden, or by a webhook."""

    COPY_REFUSED = auto()
    """The copy is refused: forbidden, or by a quota, a policy or a webhook."""

    HANDOVER_REFUSED = auto()
    """The handover of the copy is refused, for the same reasons."""


class EffectResult(NamedTuple):
    """The API server's answer to an effect; None if a watch will show the result."""

    answer: EffectAnswer | None = None
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The observation that a step is decided on. No part is older than the move's own status.

    Attributes:
        pod: the pod of the move's pod name; None without one. If its UID is not the status's, it
            may be the replacement.
        first: the move that this one follows, while its pod has yet to come; None without one.
        seat: the Reservation of the seat's name; None without one.
        replacement: the bound pod that replaced the moved pod: the one that claimed the seat, or
            else one without claims that is no other move's replacement.
        heir: an unbound pod that came in place of the moved pod; None without one.
        has_strayed: the replacement is not on a target of the move.
        has_claimed: the replacement, or an entering pod, has claimed the seat.
        is_replaced: a replacement is expected: False once the controller is gone, or wants no more
            pods than it has.
        failure: why the controller could not create a pod, in words; may be empty.
        surge: the copy and the ReplicaSet; None if they do not matter.
        waiting: the UIDs of unbound pods that the seat's owner rule would match: they existed
            before the eviction, so that they may not claim.
        turn: the turn from arbitration.
        rival: another move of the same pod that goes first, in words; empty without one.
        failed_member: the failed member of its group, in words; empty without one.
        is_needless: the pods for which its group makes room need it no more.
        confined: why no allowed node can use the pod's volumes; empty if one can.
        outdated: what has changed since its plan, once it could begin; empty if nothing.
        answer: the answer to the last step's effect; None without a new one.
        said: the text of the answer.
        attended_since: since when this process decides (`Attendance`), unix seconds.
    """

    pod: ObservedPod | None = None
    first: ObservedMove | None = None
    seat: ObservedSeat | None = None
    replacement: Replacement = NOBODY
    heir: ObservedPod | None = None
    has_strayed: bool = False
    has_claimed: bool = False
    is_replaced: bool = True
    failure: str = ""
    surge: ObservedSurge | None = None
    waiting: frozenset[str] = frozenset()
    turn: MoveTurn = GO
    rival: str = ""
    failed_member: str = ""
    is_needless: bool = False
    confined: str = ""
    outdated: str = ""
    answer: EffectAnswer | None = None
    said: str = ""
    attended_since: float = 0.0
