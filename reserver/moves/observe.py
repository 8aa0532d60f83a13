"""Observes the pod, the seat and the replacement of a move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cachetools import TTLCache

from reserver.cluster.pod import NO_CONTROLLER, Pod, migrates
from reserver.k8s.objects.times import show_moment
from reserver.moves.arbitration import Ruling
from reserver.moves.attendance import Attendance
from reserver.moves.feasibility import closed, confined, edited, is_as_asked, outdated
from reserver.moves.index import MoveIndex, first_of
from reserver.moves.migrations import (
    BEFORE_IT_GOES,
    SEEN_LATE_S,
    age,
    claims_seat,
    heirs,
    migrated,
    observed,
    shown,
)
from reserver.moves.model import NOBODY, Move, Replacement
from reserver.moves.observation import (
    EffectResult,
    Observation,
    ObservedPod,
    ObservedSeat,
    ObservedSurge,
)
from reserver.moves.phases import MovePhase
from reserver.moves.surges import exclusive_volume
from reserver.moves.workloads import WantedPods, Workload, Workloads
from reserver.reservations.enums import Phase as Claims
from reserver.reservations.placement import Part, nodes_of
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ShortNodes
from reserver.scheduling.node_limits import too_many
from reserver.scheduling.placement import slot_pod
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache

CLAIM_PATIENCE_S = 5.0
"""Seconds in which a missing seat may turn out to be claimed. Views that lag more decide nothing
(`readiness`)."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Observes the cluster for moves.

    Attributes:
        state: capacity, pods and the ledger.
        workloads: the pods of each controller.
        attendance: since when moves are observed.
        went_at: when the seat of a landing move was first missed, unix seconds, by the move's UID.
    """

    state: State
    seats: ObjectCache
    moves: MoveIndex
    workloads: Workloads
    attendance: Attendance = field(default_factory=Attendance)
    went_at: TTLCache[str, float] = field(default_factory=lambda: TTLCache(16_384, 3600.0))

    def observe(
        self,
        move: Move,
        ruling: Ruling,
        result: EffectResult,
        wanted: WantedPods | None,
        now: float,
        surge: ObservedSurge | None = None,
    ) -> Observation:
        """Return the observation that a step of a move is decided on.

        Args:
            wanted: the controller's desired pods; None if unknown, or not needed.
            now: unix seconds.
            surge: the workload of a surging pod; None if it does not matter.
        """
        is_replaced = self._is_replaced(move, wanted)
        came, has_claimed = self._came(move, surge, now, is_replaced=is_replaced)
        waiting = list(self._waiting(move))
        came_since = heirs(move, waiting, now)
        has_heir = bool(came_since) and move.status.phase is MovePhase.LANDING
        return Observation(
            pod=self._pod(move),
            first=first_of(move, self.moves) if move.awaits_first else None,
            seat=self._seat(move) or self._seat_that_went(move, now),
            replacement=came,
            heir=observed(min(came_since, key=age)) if has_heir else None,
            has_strayed=bool(came.uid) and not is_as_asked(move, came.node, self.state.snapshot),
            has_claimed=has_claimed,
            is_replaced=is_replaced,
            failure=wanted.failure if wanted else "",
            surge=surge and self._with_volumes(surge, move),
            waiting=frozenset(pod.uid for pod in waiting) - {pod.uid for pod in came_since},
            turn=ruling.turn,
            rival=ruling.rival,
            failed_member=ruling.failed_member,
            is_needless=ruling.is_needless,
            confined=confined(move, self.state),
            outdated=outdated(move, self.state, self.moves) if ruling.turn.may_begin else "",
            answer=result.answer,
            said=result.said,
            attended_since=self.attendance.at(now),
        )

    def _came(
        self, move: Move, surge: ObservedSurge | None, now: float, *, is_replaced: bool
    ) -> tuple[Replacement, bool]:
        """Return the replacement of a move's pod, and whether it has claimed the seat."""
        if surge is not None and (copy := surge.copy) is not None:
            return Replacement(copy.name, copy.uid, copy.node), claims_seat(copy.claims, move)
        if move.status.phase is MovePhase.LANDING:
            came, has_claimed = self._replacement(move, move.status.evicted_at or 0.0)
            if came.uid or is_replaced:
                return came, has_claimed
            # The departure is observed late, after an outage much later: search from before.
            if not move.status.seat:
                return self._replacement(move, move.status.started_at or 0.0)
            found = heirs(move, self._free(move), now)
            return (shown(min(found, key=age)) if found else NOBODY), False
        if move.is_entering and (pod := self.state.pods.get(move.pod)) is not None:
            return NOBODY, claims_seat(pod.claims, move)
        return self._migrated(move) if move.status.phase in BEFORE_IT_GOES else (NOBODY, False)

    def _with_volumes(self, surge: ObservedSurge, move: Move) -> ObservedSurge:
        """Return a surge, marked unfit if a copy could not use the pod's volumes."""
        pod = self.state.pods.get(move.pod)
        if surge.unfit or pod is None:
            return surge
        return replace(surge, unfit=exclusive_volume(pod, self.state.snapshot))

    def is_awaited(self, move: Move) -> bool:
        """Return whether only the controller can show if a replacement will come."""
        has_left = self._pod(move) is None
        return move.status.phase is MovePhase.LANDING and has_left and not any(self._waiting(move))

    def _pod(self, move: Move) -> ObservedPod | None:
        pod = self.state.pods.get(move.pod)
        return None if pod is None else observed(pod)

    def _seat_that_went(self, move: Move, now: float) -> ObservedSeat | None:
        """Return a placeholder for a seat that disappeared a moment ago, as it may be claimed.

        The watch of pods shows the claiming pod, and may be behind the watch of Reservations.
        """
        if move.status.phase is not MovePhase.LANDING or not move.status.seat:
            self.went_at.pop(move.uid, None)
            return None
        if abs(now - self.went_at.setdefault(move.uid, now)) >= CLAIM_PATIENCE_S:
            return None
        return ObservedSeat(
            node=move.status.target,
            obstacle="it is gone; Reserver waits for the pod that claimed it",
        )

    def _seat(self, move: Move) -> ObservedSeat | None:
        if not move.status.seat:
            return None
        known = self.seats.known(Ref.of_object(move.name.namespace, move.status.seat))
        if known is None:
            return None
        if known.metadata.controller_uid != move.uid:
            return ObservedSeat(is_foreign=True)
        written = known.reservation
        if written is None or known.entries.problems:
            return ObservedSeat(impossible=str(known.entries.problems[0].error))
        ledger = self.state.ledger
        status = ShortNodes.of(self.state.snapshot).status(written, ledger)
        placed = replace(written, placed=ledger.placed(written))
        shut, impossible = self._closed(move, placed)
        # A backed seat on a closed node shows the obstacle to another place.
        kept = "" if status.is_backed and shut else status.message
        return ObservedSeat(
            node=nodes_of(placed.parts),
            is_backed=status.is_backed,
            is_claimed=status.phase is Claims.CLAIMED,
            obstacle=kept or ledger.obstacle(written.ref),
            closed=shut,
            impossible=impossible or edited(move, written, self.state.pods.get(move.pod)),
            refused=ledger.quotas.why_never(written),
        )

    def _closed(self, move: Move, seat: Reservation) -> tuple[str, str]:
        """Return why the node of a seat refuses the pod for now, and why it does for good.

        A move that names its node waits for reasons that pass, such as a cordon; the seat of any
        other move, or of an evicted pod, is placed elsewhere. A node that was uncordoned a moment
        ago does not count as closed.
        """
        is_landing = move.status.phase is MovePhase.LANDING
        named = "" if is_landing else move.spec.node
        there = replace(seat, placed=(Part(named, 1),)) if named else seat
        there = there.anywhere if is_landing else there
        if not there.parts:
            return "", ""
        why, passes = closed(slot_pod(there), there.parts[0].node, self.state.snapshot)
        if not why and there.volume_claims and self._is_full_of_volumes(there):
            why, passes = f"{there.parts[0].node} can attach no more volumes", True
        return ("", why) if named and not passes else (why, "")

    def is_closed(self, move: Move) -> bool:
        """Return whether the node of a move's seat refuses the pod."""
        seat = self.state.ledger.get(Ref.of_object(move.name.namespace, move.status.seat))
        return seat is not None and any(self._closed(move, seat))

    def _is_full_of_volumes(self, seat: Reservation) -> bool:
        return bool(too_many(seat, self.state, [seat.parts[0].node]))

    def workload(self, move: Move) -> Workload | None:
        """Return the controller of a move's pod; None without one."""
        controller = move.status.controller
        if controller == NO_CONTROLLER:
            pod = self.state.pods.get(move.pod)
            controller = pod.controller if pod else NO_CONTROLLER
        return None if controller == NO_CONTROLLER else Workload(move.name.namespace, controller)

    def _others(self, move: Move) -> Iterator[Pod]:
        """Yield the controller's other pods that may replace a move's pod."""
        workload = self.workload(move)
        if workload is None:
            return
        keeps_name = workload.controller.kind == "StatefulSet"
        leaving = move.status.uid or move.spec.uid
        for pod in self.workloads.pods(workload):
            is_other = pod.uid != leaving if leaving else pod.name != move.pod
            if is_other and (not keeps_name or pod.name == move.pod):
                yield pod

    def _waiting(self, move: Move) -> Iterator[Pod]:
        """Yield the unbound ones of `_others`."""
        return (pod for pod in self._others(move) if not pod.node and not pod.terminating)

    def _replacement(self, move: Move, since: float) -> tuple[Replacement, bool]:
        """Return the bound replacement, and whether it has claimed the seat.

        Without a seat only pods from after `since` (unix seconds) count.
        """
        for pod in self._others(move):
            if pod.node and claims_seat(pod.claims, move):
                return shown(pod), True
        if (there := self._migrated(move))[0].uid:
            return there
        # Without a seat no claim proves a replacement: only a surely later pod counts.
        late_s = -1.0 if move.status.seat else SEEN_LATE_S
        left_at = show_moment(since - late_s)
        came = [p for p in self._free(move) if p.created >= left_at or p.name == move.pod]
        return (shown(min(came, key=age)), False) if came else (NOBODY, False)

    def _free(self, move: Move) -> list[Pod]:
        """Return the bound ones of `_others` that claim nothing and replaced no other pod."""
        were_there = self._were_there(move)
        return [
            pod
            for pod in self._others(move)
            if pod.node
            and not pod.terminating
            and not pod.claims
            and self.moves.may_take(pod.uid, move.name)
            and pod.uid not in were_there
        ]

    def _migrated(self, move: Move) -> tuple[Replacement, bool]:
        """Return the pod of a live migration, and whether it has claimed the seat."""
        workload = self.workload(move)
        if workload is None or not migrates(workload.controller):
            return NOBODY, False
        others = (pod for pod in self._others(move) if self.moves.may_take(pod.uid, move.name))
        there = migrated(move, others)
        return (shown(there), claims_seat(there.claims, move)) if there else (NOBODY, False)

    def _were_there(self, move: Move) -> frozenset[str]:
        """Return the UIDs of pods that waited already when the seat was written."""
        ref = Ref.of_object(move.name.namespace, move.status.seat)
        seat = self.state.ledger.get(ref) if move.status.seat else None
        return seat.rules[0].replaces.existing if seat and seat.rules else frozenset()

    def _is_replaced(self, move: Move, wanted: WantedPods | None) -> bool:
        """Return whether a replacement is expected."""
        if self.workload(move) is None:
            return False
        if wanted is None or wanted.replicas is None or any(self._waiting(move)):
            return True
        workload = self.workload(move)
        assert workload is not None  # noqa: S101 - checked above
        there = [pod for pod in self.workloads.pods(workload) if not pod.terminating]
        return wanted.replicas > sum(pod.uid != move.status.uid for pod in there)
