"""Occurrences that ended while no Reserver ran: what their last status says becomes history."""

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
    Phase.EXPIRED: Outcome.IDLE,  # Said before its end.
}
"""Of an occurrence that held when its status was written."""


@dataclass(frozen=True, slots=True)
class LastSaid:
    """The last status of an occurrence, as an earlier process wrote it.

    Attributes:
        occurrence: which one.
        phase: as it is written.
        claims: the slots that were claimed, as far as it says.
    """

    occurrence: Occurrence
    phase: str
    claims: tuple[EndedClaim, ...]


def ending_of(reservation: Reservation, said: LastSaid, now: float) -> Ending | None:
    """Return the outcome of the occurrence of a status, if it held and is over at `now`.

    Args:
        reservation: as it is now, with the occurrence of now.
        said: the status.
        now: unix seconds.
    """
    recurrence, (start, end) = reservation.recurrence, said.occurrence
    outcome = _OUTCOMES.get(said.phase)
    if recurrence is None or outcome is None or not start < end <= now:
        return None
    if reservation.occurrence is not None and reservation.occurrence <= start:
        return None  # It is under way, or the clock was set back.
    begin = start - recurrence.lead
    before = replace(reservation, starts_at=begin, expires_at=end, occurrence=start)
    return Ending(before, outcome, end, max(begin, reservation.created_at), said.claims)
