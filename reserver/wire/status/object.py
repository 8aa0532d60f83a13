"""What the status of a Reservation says."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from reserver.printable import printable
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import QUOTA_EXCEEDED, Status
from reserver.reservations.terms import Phase
from reserver.wire.spec.entries import Problem
from reserver.wire.spec.object import Claim, Condition, ReservationStatus
from reserver.wire.spec.placementform import PartObject
from reserver.wire.status.configmap import INVALID
from reserver.wire.times import show_moment

MOST_CLAIMS = 1000
"""How many claims are told one by one, which keeps a status far from etcd's 1.5 MiB; `claimed`
counts all of them."""


class Said:
    """The conditions that are to be said at a moment; what is as it was keeps its time."""

    def __init__(self, before: ReservationStatus | None, generation: int, now: float) -> None:
        """Say them of a generation of the spec at `now` (unix seconds)."""
        self._before = {c.type: c for c in before.conditions} if before else {}
        self._generation = generation
        self._now = show_moment(now)

    def condition(self, kind: str, reason: str, message: str, *, holds: bool) -> Condition:
        """Return a condition."""
        status = "True" if holds else "False"
        before = self._before.get(kind)
        since = before.last_transition_time if before and before.status == status else self._now
        return Condition(kind, status, reason, printable(message), since, self._generation)


def invalid(
    problem: Problem, before: ReservationStatus | None, generation: int, now: float
) -> ReservationStatus:
    """Return the status of a Reservation that is not enforced because it cannot be."""
    say = Said(before, generation, now).condition
    return ReservationStatus(
        phase=INVALID,
        observed_generation=generation,
        claimed=0,
        expires_at=None,
        placements=[],
        claims=[],
        conditions=[
            say("Valid", "InvalidSpec", str(problem.error), holds=False),
            say("Backed", "InvalidSpec", "nothing is held", holds=False),
        ],
    )


def spoiled(
    problem: Problem, before: ReservationStatus | None, generation: int, now: float
) -> ReservationStatus:
    """Return the status of a Reservation that could not be judged: the rest stays as was said."""
    say = Said(before, generation, now).condition
    kept = before or invalid(problem, before, generation, now)
    others = (condition for condition in kept.conditions if condition.type != "Valid")
    says = say("Valid", "Fault", f"{problem.error}; what it held it holds on", holds=False)
    spoiled: ReservationStatus = structs.replace(
        kept, phase=INVALID, observed_generation=generation, conditions=[says, *others]
    )
    return spoiled


def valid(
    reservation: Reservation,
    status: Status,
    claims: Iterable[Claim],
    before: ReservationStatus | None,
    generation: int,
    now: float,
) -> ReservationStatus:
    """Return the status of a Reservation that is enforced.

    Args:
        reservation: what it says, and where it is placed.
        status: what has become of it.
        claims: who took slots; those that were told before keep the time that was told.
        before: what its status said until now.
        generation: of the spec.
        now: unix seconds.
    """
    say = Said(before, generation, now).condition
    told = {claim.uid: claim for claim in before.claims} if before else {}
    merged = sorted((_merged(c, told.get(c.uid)) for c in claims), key=lambda c: (c.at, c.uid))
    message = status.message or "the node has the room for all that is held"
    placements = [PartObject(*part) for part in reservation.parts]
    expires_at = reservation.expires_at
    return ReservationStatus(
        phase=status.phase.value,
        observed_generation=generation,
        claimed=len(merged),
        expires_at=None if expires_at is None else show_moment(expires_at),
        placements=placements,
        claims=merged[:MOST_CLAIMS],
        conditions=[
            say("Valid", "Accepted", "", holds=True),
            say("Backed", status.reason, message, holds=status.is_backed),
        ],
    )


def _merged(claim: Claim, told: Claim | None) -> Claim:
    """Return a claim with what was known of it before: its pod may be gone by now."""
    if told is None:
        return claim
    return Claim(claim.pod or told.pod, claim.uid, claim.node or told.node, told.at)


def was_admitted(said: ReservationStatus) -> bool:
    """Return whether a status says that the quotas of its namespace let a Reservation hold."""
    return said.phase != INVALID and all(c.reason != QUOTA_EXCEEDED for c in said.conditions)


def is_newly_unbacked(before: ReservationStatus | None, after: ReservationStatus) -> bool:
    """Return whether a hold is not backed and was not said to be so before."""
    unbacked = {Phase.ACTIVE, Phase.FAILED}
    if after.phase not in unbacked or _is_backed(after):
        return False
    return before is None or before.phase != after.phase or _is_backed(before)


def _is_backed(status: ReservationStatus) -> bool:
    return any(c.type == "Backed" and c.status == "True" for c in status.conditions)
