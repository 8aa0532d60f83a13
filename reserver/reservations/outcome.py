"""The outcome of a reservation that is over: claimed by whom, expired or removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reserver.reservations.digest import is_mark
from reserver.reservations.entry import EndedClaim, ended_claim
from reserver.reservations.enums import Outcome, Phase
from reserver.reservations.placement import claimed_slots
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

_MOST_TOLD = 3
_OUTCOMES = {Phase.CLAIMED: Outcome.CLAIMED, Phase.EXPIRED: Outcome.EXPIRED}


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of a reservation.

    Attributes:
        reservation: as it was written and placed.
        at: when this was seen, unix seconds.
        since: when it was first seen, unix seconds.
        claims: the slots that were claimed.
        most_claimed: how many slots of what is reusable were claimed at once; `claims` are of then.
        text: what was written there, if that is known.
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
        """Return what has become of a reservation by now.

        Args:
            reservation: as it is written.
            ledger: what holds, and who claimed it.
            at: this moment, in unix seconds.
            since: when it was first seen, in unix seconds.
            claimed_at: when claims were first seen, by UID, where that is known.
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
        told = tuple(sorted(claims, key=_told_first))
        return cls(known, outcome, at, since, told, peak.slots)

    def __str__(self) -> str:
        """Return half a sentence for people."""
        pods, claimed = [claim.pod for claim in self.claims if claim.pod], self.claimed
        return describe(self.outcome, pods, claimed, self.reservation.slots_beside(claimed))

    @property
    def claimed(self) -> int:
        """How many slots were claimed: of what is reusable at its peak."""
        nodes = [each.node for each in self.claims]
        return max(self.most_claimed, claimed_slots(nodes, is_whole=self.reservation.is_whole))


def _told_first(claim: EndedClaim) -> tuple[bool, float, str]:
    """Return the sort key of claims: what least is known of comes last."""
    return is_mark(claim.uid), claim.at, claim.pod


def describe(outcome: Outcome, pods: list[str], claimed: int, slots: int) -> str:
    """Return what became of a reservation in half a sentence.

    Args:
        pods: those that claimed a slot and are known.
        claimed: how many slots were claimed.
        slots: how many it had.
    """
    more = len(pods) - _MOST_TOLD
    who = ", ".join(pods[:_MOST_TOLD]) + (f" and {more} more" if more > 0 else "")
    by = f" by {who}" if who else ""
    if outcome is Outcome.CLAIMED:
        return f"claimed{by}"
    word = "released when idle," if outcome is Outcome.IDLE else outcome.lower()
    return f"{word} with {claimed} of {slots} slots claimed{by}" if claimed else f"{word} unclaimed"
