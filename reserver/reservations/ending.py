"""What became of a reservation that is over: who claimed it, or that nobody did."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.cluster.pod import PodName
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.terms import Phase
from reserver.reservations.view import LedgerView

_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of a reservation.

    Attributes:
        ref: where it was written.
        phase: how far it had come.
        claimed: how many of its slots were claimed.
        slots: how many it had.
        pods: those with a slot that are known.
    """

    ref: Ref
    phase: Phase
    claimed: int
    slots: int
    pods: tuple[PodName, ...] = ()

    @classmethod
    def of(cls, reservation: Reservation, ledger: LedgerView) -> Ending:
        """Return what has become of a reservation by now."""
        ref = reservation.ref
        phase, claimed = ledger.phase(ref) or Phase.EXPIRED, ledger.claimed(ref)
        pods = tuple(sorted(ledger.claims(ref).values()))
        return cls(ref, phase, claimed, reservation.slots, pods)

    def __str__(self) -> str:
        """Return half a sentence for people."""
        if self.phase is Phase.CLAIMED:
            return f"claimed by {self._who}" if self.pods else "claimed"
        if not self.claimed:
            return "expired unclaimed"
        who = f", by {self._who}" if self.pods else ""
        return f"expired with {self.claimed} of {self.slots} slots claimed{who}"

    @property
    def _who(self) -> str:
        more = len(self.pods) - _MOST_TOLD
        return ", ".join(map(str, self.pods[:_MOST_TOLD])) + (
            f" and {more} more" if more > 0 else ""
        )
