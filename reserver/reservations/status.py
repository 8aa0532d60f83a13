"""The status of a reservation: its phase, and whether its nodes have the room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reserver.base.schedule import Occurrence
from reserver.cluster.categorical import ABSENT
from reserver.cluster.constraints import Taint
from reserver.cluster.guests import on_whole_nodes
from reserver.cluster.node import CORDON, REMOVING
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.printable import printable
from reserver.reservations.enums import Phase
from reserver.reservations.placement import nodes_of
from reserver.reservations.quota import EXCEEDED
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

_NOT_HOLDING = {
    Phase.PENDING: "startsAt lies in the future; nothing is held until then",
    Phase.CLAIMED: "every slot is claimed; nothing is held any more",
    Phase.EXPIRED: "expiresAt has passed; nothing is held any more",
}

_NO_OCCURRENCE = "the next occurrence lies in the future; nothing is held until then"

_SUSPENDED = "schedule.suspend is true; nothing is held while it is"

_USED_UP = "every slot is claimed; a slot is held again once its pod ends"

_UNUSED = "no pod has had a slot for the time in releaseIfIdle; nothing is held any more"

EXCEEDS_QUOTA, EXCEEDS_BOUNDS = "ExceedsQuota", "ExceedsBounds"
"""The reasons of an admitted reservation that exceeds a quota, or a bound."""

FIELDS_IGNORED = "FieldsIgnored"
"""The reason of a reservation with fields of a newer version."""

QUOTA_EXCEEDED = "QuotaExceeded"
"""The reason of a reservation that its namespace's quotas do not admit."""

_REASONS = {
    Phase.PENDING: "NotStarted",
    Phase.ACTIVE: "NotEnoughRoom",
    Phase.CLAIMED: "Claimed",
    Phase.EXPIRED: "Expired",
    Phase.FAILED: "NodeNotFound",
}

NOT_REFILLED = "NotRefilled"
"""The reason of a backed reservation without room to refill a claimed slot."""

IDLE = "Idle"
"""The reason of a reservation that was released by `releaseIfIdle`."""

_NO_RESOURCE = "no node offers {} as a resource; a device of a DeviceClass (DRA) cannot be held"


def limit_of(exceeds: str) -> str:
    """Return the reason for an exceeded limit (`ReservationState.exceeds`)."""
    return EXCEEDS_QUOTA if exceeds.startswith(EXCEEDED) else EXCEEDS_BOUNDS


class ReservationState(NamedTuple):
    """The status of one reservation at one instant.

    Attributes:
        phase: its phase.
        is_backed: it holds, and its nodes have the room.
        message: why it is not backed, why its node is closed, or why fields cannot be written; may
            be empty.
        claims: its claims to persist, by UID (`Ledger.recorded`).
        landed: their nodes, for a reservation on several nodes (`Ledger.landed`).
        is_unplaced: it is Pending because it has no place.
        exceeds_quota: it is Pending because it exceeds a quota of its namespace.
        exceeds: the limit that it exceeds although admitted; empty if none.
        closed: the reason of a closed node, of a missing refill or of idleness; empty without one.
        ignored: its fields of a newer version, in words; empty without any.
        idle_since: since when no pod has used it, unix seconds; 0 without `releaseIfIdle`.
        occurrences: its current or next occurrence, and the following ones, if recurring.
    """

    phase: Phase
    is_backed: bool
    message: str = ""
    claims: Mapping[str, int] = MappingProxyType({})
    landed: Mapping[str, str] = MappingProxyType({})
    is_unplaced: bool = False
    exceeds_quota: bool = False
    closed: str = ""
    exceeds: str = ""
    ignored: str = ""
    idle_since: float = 0.0
    occurrences: tuple[Occurrence, ...] = ()

    @property
    def reason(self) -> str:
        """The reason of its Backed condition."""
        if self.closed or self.is_backed:
            return self.closed or "RoomHeld"
        if self.exceeds_quota:
            return QUOTA_EXCEEDED
        return "NotPlaced" if self.is_unplaced else _REASONS[self.phase]


@dataclass(frozen=True, slots=True)
class ShortNodes:
    """The nodes that are short of room for their holds, or closed, at one instant.

    Attributes:
        by_node: the lacking amounts of each short node, by resource; None for a node that does not
            exist. Only nodes with holds are examined.
        offered: the resources that any node offers; every node is short of all others.
        closed: nodes with holds that are cordoned or being emptied (`Topology.closed`).
        guests: the pods on nodes that are held whole, except pods that run on every node.
    """

    by_node: Mapping[str, Mapping[str, int] | None]
    offered: frozenset[str]
    closed: Mapping[str, Taint] = field(default_factory=dict)
    guests: Mapping[str, Sequence[Pod]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, nodes: Sequence[str] | None = None) -> ShortNodes:
        """Return where allocatable − requested − held is below zero, among `nodes` or all."""
        looked = snapshot.has_holds
        if nodes is not None:
            looked = looked & snapshot.marked(snapshot.rows(nodes))
        lacking: dict[str, dict[str, int]] = {}
        for node, name, lack in snapshot.lacks(looked):
            lacking.setdefault(node, {})[name] = lack
        missing = map(snapshot.name_of, np.flatnonzero(looked & ~snapshot.exists).tolist())
        topology = snapshot.topology
        may_be_closed = looked & (topology.cordoned | (topology.taints.ids != ABSENT))
        closed = {
            snapshot.name_of(row): taint
            for row, taint in (topology.closed().items() if may_be_closed.any() else ())
            if snapshot.has_holds[row]
        }
        guests = on_whole_nodes(snapshot) if snapshot.whole_nodes else {}
        lacks = {**lacking, **dict.fromkeys(missing)}
        return cls(lacks, frozenset(snapshot.columns), closed, guests)

    def status(self, reservation: Reservation, ledger: LedgerView) -> ReservationState:
        """Return the status of a reservation.

        On a short node the reservations that were written last are not backed: an owner takes its
        seat regardless of later reservations on its node (`scheduling.fit`).
        """
        # A reservation that is not in the ledger cannot be in force.
        phase = ledger.phase(reservation.ref) or Phase.PENDING
        ref = reservation.ref
        if excess := ledger.excess(ref):
            verdict = ReservationState(phase, is_backed=False, message=excess, exceeds_quota=True)
        else:
            verdict = self._judge(phase, reservation, ledger)
        message, unwritten = verdict.message, ledger.unwritten(ref)
        if unwritten and unwritten not in message:
            message = f"{message}{'; ' if message else ''}it cannot be written: {unwritten}"
        return verdict._replace(
            message=printable(message),
            claims=ledger.recorded(ref),
            landed=ledger.landed(ref),
            exceeds=ledger.exceeds(ref),
            idle_since=ledger.idle_since(ref),
            occurrences=ledger.current(reservation).next_occurrences,
        )

    def backs(self, reservation: Reservation, phase: Phase, ledger: LedgerView) -> bool:
        """Return whether a reservation is backed, in half the time of its whole status."""
        return self._judge(phase, reservation, ledger).is_backed

    def _judge(
        self, phase: Phase, reservation: Reservation, ledger: LedgerView
    ) -> ReservationState:
        """Return the status of a reservation without its claims."""
        if phase is Phase.FAILED:
            node = reservation.node
            message = f"node {node!r} does not exist; the reservation waits for it"
            return ReservationState(phase, is_backed=False, message=message)
        if phase is Phase.PENDING and (obstacle := _placelessness(reservation, ledger)):
            return ReservationState(phase, is_backed=False, message=obstacle, is_unplaced=True)
        if phase is not Phase.ACTIVE:
            message, why = _not_holding(phase, reservation, ledger)
            return ReservationState(phase, is_backed=False, message=message, closed=why)
        if why := _unsettled(reservation, ledger):
            return ReservationState(Phase.PENDING, is_backed=False, message=why, is_unplaced=True)
        if short := self._shortage(reservation, ledger):
            return ReservationState(phase, is_backed=False, message=short)
        return _not_refilled(reservation, ledger) or self._judge_nodes(reservation)

    def _judge_nodes(self, reservation: Reservation) -> ReservationState:
        """Return the status of a backed reservation, whose node may be closed."""
        tolerations = reservation.placement.constraints.tolerations if self.closed else ()
        for part in reservation.parts if self.closed else ():
            taint = self.closed.get(part.node)
            if taint and not any(each.tolerates(taint) for each in tolerations):
                reason, message = out_of_reach(part.node, taint)
                return ReservationState(
                    Phase.ACTIVE, is_backed=True, message=message, closed=reason
                )
        return ReservationState(Phase.ACTIVE, is_backed=True)

    def _shortage(self, reservation: Reservation, ledger: LedgerView) -> str:
        """Return a message on the first node without a reservation's room; empty if all have it."""
        for part in reservation.parts:
            if reservation.is_whole:
                if not all(map(reservation.is_owned_by, self.guests.get(part.node, ()))):
                    return f"{part.node} runs pods of others; the reservation waits until they end"
            elif lacking := self._lacking(part.node, reservation, ledger):
                message = _short(part.node, lacking, reservation)
                unknown = ", ".join(name for name in lacking if name not in self.offered)
                return f"{message}; {_NO_RESOURCE.format(unknown)}" if unknown else message
        return ""

    def _lacking(self, node: str, reservation: Reservation, ledger: LedgerView) -> list[str]:
        """Return a reservation's resources that a node lacks."""
        short = self.by_node.get(node) or {}
        later = ledger.held_after(node, reservation) if short else {}
        return [
            name
            for name in sorted(reservation.resources)
            if short.get(name, 0) > later.get(name, 0) or name not in self.offered
        ]


def _not_holding(phase: Phase, reservation: Reservation, ledger: LedgerView) -> tuple[str, str]:
    """Return why a reservation holds nothing: a message, and a reason if the phase has none."""
    if ledger.is_released(reservation.ref):
        return _UNUSED, IDLE
    if phase is Phase.PENDING and (recurrence := reservation.recurrence):
        return (_SUSPENDED if recurrence.is_suspended else _NO_OCCURRENCE), ""
    is_used_up = phase is Phase.CLAIMED and reservation.reusable
    return _USED_UP if is_used_up else _NOT_HOLDING[phase], ""


def _not_refilled(reservation: Reservation, ledger: LedgerView) -> ReservationState | None:
    """Return the status of a reservation without room to refill; None for others."""
    waits = _placelessness(reservation, ledger) if reservation.refill_up_to else ""
    if not waits:
        return None
    message = f"a claimed slot is not replaced: {waits}"
    return ReservationState(Phase.ACTIVE, is_backed=True, message=message, closed=NOT_REFILLED)


def _placelessness(reservation: Reservation, ledger: LedgerView) -> str:
    """Return why some slots have no place; empty if none needs one."""
    if not ledger.is_unplaced(reservation.ref):
        return ""
    return ledger.obstacle(reservation.ref) or "Reserver is looking for a place"


def _unsettled(reservation: Reservation, ledger: LedgerView) -> str:
    """Return why a reservation does not count as placed yet; empty if it does."""
    if ledger.is_edited(reservation.ref):
        return "the reservation was edited; Reserver is checking whether its place still fits"
    placed = ledger.placed(reservation)
    # A reservation with refill is in force with the slots that are written.
    is_known = bool(reservation.refill_up_to and reservation.placed)
    # After a restart an unwritten place would be lost.
    if placed != reservation.placed and not is_known:
        return f"placed on {nodes_of(placed)}; Reserver is writing that down"
    return ""


def _short(node: str, lacking: list[str], reservation: Reservation) -> str:
    message = (
        f"{node} has too little {', '.join(lacking)}: pods and other holds use it; "
        "the reservation waits for room"
    )
    if reservation.yields_above is not None:
        above = reservation.yields_above
        message += f" (preemptible: pods of a higher priority than {above} may take it)"
    return message


NODE_CORDONED, NODE_LEAVING, NODE_TAINTED = "NodeCordoned", "NodeLeaving", "NodeTainted"
"""The reasons of a reservation that is backed by a closed node."""


def out_of_reach(node: str, taint: Taint) -> tuple[str, str]:
    """Return the reason and the message of a closed node."""
    then = "or release it to reserve elsewhere"
    if taint == CORDON:
        waits = "owners that do not tolerate that wait until it is uncordoned"
        return NODE_CORDONED, f"{node} is cordoned: {waits}, {then}"
    named = f"it has the taint {taint.key}:{taint.effect}"
    if taint.key in REMOVING:
        return NODE_LEAVING, f"{node} is being removed by an autoscaler ({named}), {then}"
    waits = "owners that do not tolerate it wait until it is gone"
    return NODE_TAINTED, f"{node} evicts pods ({named}): {waits}, {then}"
