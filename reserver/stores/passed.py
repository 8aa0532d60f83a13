"""Derives the endings of occurrences that ended while no Reserver ran from their last status."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reserver.base.schedule import Occurrence
from reserver.reservations.entry import EndedClaim
from reserver.reservations.enums import Outcome, Phase
from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Reservation

_OUTCOMES: dict[str, Outcome] = {
    Phase.ACTIVE: Outcome.EXPIRED,
    Phase.FAILED: Outcome.EXPIRED,
    Phase.CLAIMED: Outcome.CLAIMED,
    Phase.EXPIRED: Outcome.IDLE,  # Written before its end, so it was released as idle.
}
"""The outcome by last phase, for phases of an occurrence that began."""


@dataclass(frozen=True, slots=True)
class LastStatus:
    """The last status of an occurrence, written by an earlier process.

    Attributes:
        occurrence: its start and end.
        phase: the phase in the status.
        claims: the claimed slots in the status.
    """

    occurrence: Occurrence
    phase: str
    claims: tuple[EndedClaim, ...]


def ending_of(reservation: Reservation, status: LastStatus, now: float) -> Ending | None:
    """Return the ending of the occurrence of a status; None if it did not hold, or has not ended.

    Args:
        reservation: the reservation with its present occurrence.
        status: the last status.
        now: unix seconds.
    """
    recurrence, (start, end) = reservation.recurrence, status.occurrence
    outcome = _OUTCOMES.get(status.phase)
    if recurrence is None or outcome is None or not start < end <= now:
        return None
    if reservation.occurrence is not None and reservation.occurrence <= start:
        return None  # It has not ended, or the clock was set back.
    begin = start - recurrence.lead
    before = replace(reservation, starts_at=begin, expires_at=end, occurrence=start)
    return Ending(before, outcome, end, max(begin, reservation.created_at), status.claims)
