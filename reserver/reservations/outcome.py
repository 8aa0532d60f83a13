"""The outcome of an ended reservation: claimed by which pods, expired or removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reserver.base.schedule import Occurrence
from reserver.reservations.digest import is_mark
from reserver.reservations.entry import EndedClaim, ended_claim
from reserver.reservations.enums import Outcome, Phase
from reserver.reservations.placement import claimed_slots
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

_MOST_NAMED = 3
_OUTCOMES = {Phase.CLAIMED: Outcome.CLAIMED, Phase.EXPIRED: Outcome.EXPIRED}


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of a reservation.

    Attributes:
        reservation: the spec and its last place.
        at: the observation of the end, unix seconds.
        since: the first observation of the reservation, unix seconds.
        claims: the claims; of a reusable reservation, those of its peak.
        most_claimed: the most slots of a reusable reservation that were claimed at a time.
        text: the text of the entry; empty if unknown.
    """

    reservation: Reservation
    outcome: Outcome
    at: float
    since: float = 0.0
    claims: tuple[EndedClaim, ...] = ()
    most_claimed: int = 0
    text: str = ""

    @classmethod
    def of(
        cls,
        reservation: Reservation,
        ledger: LedgerView,
        at: float,
        since: float = 0.0,
        claimed_at: Mapping[str, float] | None = None,
    ) -> Ending:
        """Return the outcome of a reservation at this moment.

        Args:
            reservation: the written spec.
            ledger: the holds and claims.
            at: this moment, in unix seconds.
            since: the first observation of the reservation, in unix seconds.
            claimed_at: the first observation of claims, in unix seconds by UID, where known.
        """
        ref, times = reservation.ref, claimed_at or {}
        phase = ledger.phase(ref)
        outcome = _OUTCOMES.get(phase, Outcome.REMOVED) if phase else Outcome.REMOVED
        outcome = Outcome.IDLE if ledger.is_released(ref) else outcome
        pods, peak = ledger.claiming(ref), ledger.peak(ref)
        claims: Iterable[EndedClaim] = (
            ended_claim(uid, pod, times.get(uid, 0)) for uid, pod in pods.items()
        )
        if peak.pods > len(pods):
            claims = peak.claims
        known = ledger.get(ref) or reservation
        ordered = tuple(sorted(claims, key=_claim_order))
        return cls(known, outcome, at, since, ordered, peak.slots)

    def __str__(self) -> str:
        """Return the outcome as part of a sentence."""
        pods, claimed = [claim.pod for claim in self.claims if claim.pod], self.claimed
        return describe(self.outcome, pods, claimed, self.reservation.slots_beside(claimed))

    @property
    def claimed(self) -> int:
        """The number of claimed slots; of a reusable reservation, at its peak."""
        nodes = [each.node for each in self.claims]
        return max(self.most_claimed, claimed_slots(nodes, is_whole=self.reservation.is_whole))


def _claim_order(claim: EndedClaim) -> tuple[bool, float, str]:
    """Return the sort key of claims: claims that have only a mark come last."""
    return is_mark(claim.uid), claim.at, claim.pod


def describe(outcome: Outcome, pods: list[str], claimed: int, slots: int) -> str:
    """Return an outcome as part of a sentence.

    Args:
        pods: the names of claiming pods, where known.
        claimed: the number of claimed slots.
        slots: the number of slots.
    """
    more = len(pods) - _MOST_NAMED
    claimants = ", ".join(pods[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    by = f" by {claimants}" if claimants else ""
    if outcome is Outcome.CLAIMED:
        return f"claimed{by}"
    word = "released when idle," if outcome is Outcome.IDLE else outcome.lower()
    return f"{word} with {claimed} of {slots} slots claimed{by}" if claimed else f"{word} unclaimed"


_LAST_OUTCOMES: dict[str, Outcome] = {
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
    outcome = _LAST_OUTCOMES.get(status.phase)
    if recurrence is None or outcome is None or not start < end <= now:
        return None
    if reservation.occurrence is not None and reservation.occurrence <= start:
        return None  # It has not ended, or the clock was set back.
    begin = start - recurrence.lead
    before = replace(reservation, starts_at=begin, expires_at=end, occurrence=start)
    return Ending(before, outcome, end, max(begin, reservation.created_at), status.claims)
