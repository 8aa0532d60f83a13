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
    """The pod that is to leave.

    Attributes:
        uid: tells it from another one of its name.
        node: where it is; empty while it is pending.
        controller: what will replace it.
        requests: what it requests: millicores of cpu, base units of all else.
        volume_claims: the names of the PersistentVolumeClaims that outlive it.
        is_leaving: it has a deletionTimestamp.
        is_finished: it has succeeded or failed.
        is_mirror: its kubelet runs it from a file.
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
        phase: how far it is.
        reason: why it is there.
        came: the pod that it has brought to its node; nobody before that.
        problem: why it never brings the one that is awaited; empty if it may.
    """

    phase: MovePhase
    reason: str = ""
    came: Replacement = NOBODY
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSeat:
    """The Reservation that is the seat, as the store and the ledger show it.

    Attributes:
        is_foreign: the Reservation of that name belongs to something else than this move.
        node: where it is; empty while it has no place.
        is_backed: it holds, its node has the room, and that is acknowledged.
        is_claimed: the replacement has claimed it, and is being bound.
        obstacle: why it has no place, or no other one, or is not backed, for people; may be empty.
        closed: why its node does not take the pod now, but may later, or another one instead;
            empty if it does.
        impossible: why it will never be had: its node is gone, or has a taint that the pod does
            not tolerate; empty if it may.
        refused: why the quota of its namespace would not let it hold if it were alone; empty if it
            would.
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
        """Whether the pod that it is for could land on it now."""
        return self.is_backed and not (self.closed or self.impossible)

    @property
    def problem(self) -> str:
        """Why that pod could not, for people; empty if it could."""
        return "; ".join(filter(None, (self.impossible or self.closed, self.obstacle)))


class ObservedCopy(NamedTuple):
    """The copy of the pod, as the API server has it.

    Attributes:
        uid: its UID.
        revision: its resourceVersion: it is handed over only as it was seen.
        node: where it is; empty while it has no node.
        claims: identities of the reservations whose slots its binding took.
        is_foreign: the pod of that name is not the copy of this move.
        is_ready: it has been ready for as long as its ReplicaSet asks for.
        is_leaving: it is being deleted, or has finished.
        is_handed_over: its ReplicaSet is its controller.
        said: why it is not ready, for people; may be empty.
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
    """The pod that its ReplicaSet is to remove, as the API server has it.

    Attributes:
        revision: its resourceVersion.
        cost: its ``controller.kubernetes.io/pod-deletion-cost``; empty if it has none.
        is_marked: this move has made that the lowest.
        is_ready: it is ready.
    """

    revision: str = ""
    cost: str = ""
    is_marked: bool = False
    is_ready: bool = False


NOT_SEEN = ObservedOriginal()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSurge:
    """The workload of a pod that is to surge, read from the API server for this step.

    Attributes:
        unfit: why the pod cannot surge, for people; empty if it can.
        is_wanted: its ReplicaSet wants pods.
        others: why its ReplicaSet might remove another pod, for people; empty if none.
        copy: what is there by the name of the copy; None if nothing is.
        leaving: the pod, while it is there.
        template: of the pods, as the ReplicaSet makes them.
        withheld: the labels of those that the copy gets when it is handed over.
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
        may_begin: it may take its seat; without one, it may evict.
        may_evict: all of its group hold their seats, and there is room for one more eviction.
        why: what it waits for, for people; empty if it waits for nothing.
        is_blocked: a PodDisruptionBudget is what it waits for.
        waits_for_group: members of its group are what it waits for.
        opens_at: when the window opens that it waits for, unix seconds; 0 if it waits for none, or
            nobody can tell.
        closes_at: until when all this is so, unix seconds.
        waits_for_window: a window is what it waits for.
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
    """Budgets do not allow it now (429)."""

    UNSURE = auto()
    """No answer, or one that says nothing of the request: it may have been carried out."""

    EVICTION_REFUSED = auto()
    """It will never be allowed: forbidden, or by two budgets, or by a webhook."""

    SEAT_REFUSED = auto()
    """The seat will never be accepted: forbidden, or by a webhook."""

    COPY_REFUSED = auto()
    """The copy will never be accepted: by a quota, a policy, a webhook, or forbidden."""

    HANDOVER_REFUSED = auto()
    """The copy may not be handed over: likewise."""


class EffectResult(NamedTuple):
    """The API server's answer to the effect of the step before; None where a watch will show it."""

    answer: EffectAnswer | None = None
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The observation that a step is decided on. No part is older than the move's own status.

    Attributes:
        pod: the pod of the move's name, None if there is none. Once `Status.uid` is known, one of
            another UID is not the pod; it may be the replacement.
        first: the move that this one follows, while its pod has yet to come; None if there is none.
        seat: the Reservation of the seat's name, None if there is none.
        replacement: the pod that came after the one that left, as far as it is bound: the one that
            claimed the seat, or else one that nobody's seat accounts for.
        heir: a pod that came in place of the one that left and waits for a node; None if none does.
        has_strayed: the replacement is not where the move wants it.
        has_claimed: the replacement claimed the seat of this move, or the pod itself did, which
            had no node.
        is_replaced: whether a replacement is to be awaited: False once the controller is gone, or
            wants no more pods than it has.
        failure: why its controller could not make one, for people; empty if it could.
        surge: what its copy and its ReplicaSet are; None where they do not matter.
        waiting: UIDs of unbound pods that the seat's owner rule would match: they were there before
            the eviction, so that they may not claim.
        turn: what arbitration allows.
        rival: the move that has the same pod, for people: an older one that has not ended, or one
            that does not wait where this one does; empty if there is none.
        failed_member: which member of its group failed, for people; empty if none has.
        is_needless: the pods that its group made room for wait for it no more.
        confined: why no node that the pod may go to can use its volumes; empty if one can.
        outdated: what the plan that it is part of did not suppose, now that it could begin; empty
            if nothing.
        answer: to the effect of the step before; None if nothing is new.
        said: what the answer said.
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
