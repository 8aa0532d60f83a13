"""The status of a Reservation object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import structs

from reserver.cluster import quantity
from reserver.cluster.labels import NOTHING
from reserver.cluster.pod import NO_CONTROLLER
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_CLAIMS_RECORDED
from reserver.k8s.objects.objects import ConditionWriter
from reserver.k8s.objects.times import parse_moment, show_moment
from reserver.reservations.digest import is_mark, joined_marks, parted_marks
from reserver.reservations.entry import EndedClaim
from reserver.reservations.enums import Phase
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import claimed_slots
from reserver.reservations.recurrence import occurrence_digest
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import (
    FIELDS_IGNORED,
    QUOTA_EXCEEDED,
    ReservationState,
    limit_of,
)
from reserver.stores.codec import recurrence_codec
from reserver.stores.codec.placement_codec import PartObject
from reserver.stores.configmap.entries import EntryProblem
from reserver.stores.configmap.status_codec import INVALID
from reserver.stores.object.codec import MoreClaims, ReservationStatus, StatusClaim, Summary
from reserver.stores.passed import LastSaid

WITHIN_LIMITS = "WithinLimits"
"""The condition of a Reservation that exceeds a limit, and holds all the same; others have none."""

_MOST_TOLD = 5
"""How many nodes, resources or owners a summary names."""

_MOST_CHARACTERS = 100
"""How long each part of a summary is: it stands in a column."""


def invalid(
    problem: EntryProblem, before: ReservationStatus | None, generation: int, now: float
) -> ReservationStatus:
    """Return the status of a Reservation that is not enforced because it cannot be."""
    say = ConditionWriter(before.conditions if before else (), generation, now).condition
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


def faulty(
    problem: EntryProblem, before: ReservationStatus | None, generation: int, now: float
) -> ReservationStatus:
    """Return the status of a Reservation that could not be judged: the rest stays as was said."""
    say = ConditionWriter(before.conditions if before else (), generation, now).condition
    kept = before or invalid(problem, before, generation, now)
    others = (condition for condition in kept.conditions if condition.type != "Valid")
    says = say("Valid", "Fault", f"{problem.error}; it still holds as before", holds=False)
    status: ReservationStatus = structs.replace(
        kept, phase=INVALID, observed_generation=generation, conditions=[says, *others]
    )
    return status


def valid(
    reservation: Reservation,
    status: ReservationState,
    claims: Iterable[StatusClaim],
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
    say = ConditionWriter(before.conditions if before else (), generation, now).condition
    told = {claim.uid: claim for claim in before.claims} if before else {}
    merged = sorted((_merged(c, told.get(c.uid)) for c in claims), key=_told_first)
    claimed = claimed_slots([each.node for each in merged], is_whole=reservation.is_whole)
    named = [each for each in merged[:MOST_CLAIMS_RECORDED] if not is_mark(each.uid)]
    message = status.message or "the node has room for all holds"
    placements = [PartObject(*part) for part in reservation.parts]
    expires_at, recurrence = reservation.expires_at, reservation.recurrence
    within = []
    if status.exceeds:
        within = [say(WITHIN_LIMITS, limit_of(status.exceeds), status.exceeds, holds=False)]
    return ReservationStatus(
        phase=status.phase.value,
        observed_generation=generation,
        claimed=claimed,
        expires_at=None if expires_at is None else show_moment(expires_at),
        idle_since=show_moment(status.idle_since) if status.idle_since else None,
        occurrences=recurrence_codec.show(status.occurrences, recurrence) if recurrence else None,
        placements=placements,
        claims=named,
        more_claims=_more(merged[len(named) :]) or None,
        summary=summary(reservation, claimed),
        conditions=[
            say("Valid", FIELDS_IGNORED, status.ignored, holds=True)
            if status.ignored
            else say("Valid", "Accepted", "", holds=True),
            say("Backed", status.reason, message, holds=status.is_backed),
            *within,
        ],
    )


def recorded(status: ReservationStatus) -> dict[str, str]:
    """Return where each pod has its slot, by UID or mark; empty if that is no longer known."""
    more = {pod: each.node for each in status.more_claims or () for pod in parted_marks(each.pods)}
    return {claim.uid: claim.node for claim in status.claims} | more


def latest(status: ReservationStatus) -> LastSaid | None:
    """Return what a status says of an occurrence; None of what does not recur."""
    if not status.occurrences:
        return None
    named = {claim.uid: claim for claim in status.claims}
    claims = (
        EndedClaim(uid, named[uid].pod, node, _at(named[uid]))
        if uid in named
        else EndedClaim(uid, node=node)
        for uid, node in recorded(status).items()
    )
    return LastSaid(status.occurrences[0].moments, status.phase, tuple(claims))


def _at(claim: StatusClaim) -> float:
    with suppress(InvalidInput):  # Not written by us.
        return parse_moment(claim.at)
    return 0.0


def digest(reservation: Reservation, said: ReservationStatus) -> str:
    """Return the digest of what a status is about: of what recurs of one occurrence."""
    if reservation.recurrence is None or not said.occurrences:
        return reservation.digest
    return occurrence_digest(reservation.digest, said.occurrences[0].start)


def idle_since(status: ReservationStatus) -> float:
    """Return since when no pod has used it, in unix seconds; 0 if it does not say so."""
    with suppress(InvalidInput):  # Not written by us.
        return parse_moment(status.idle_since) if status.idle_since else 0.0
    return 0.0


def _told_first(claim: StatusClaim) -> tuple[bool, str, str]:
    """Return the sort key of claims: what is known by its mark alone comes last."""
    return is_mark(claim.uid), claim.at, claim.uid


def _more(claims: Iterable[StatusClaim]) -> list[MoreClaims]:
    pods: dict[str, list[str]] = {}
    for claim in claims:
        pods.setdefault(claim.node, []).append(claim.uid)
    return [MoreClaims(node, joined_marks(each)) for node, each in sorted(pods.items())]


def new_remarks(
    before: ReservationStatus | None, after: ReservationStatus
) -> Iterator[tuple[str, str]]:
    """Yield reason and words of a limit exceeded, or fields ignored, not said before."""
    told = {condition.reason for condition in before.conditions} if before else set()
    for condition in after.conditions:
        is_remark = condition.type == WITHIN_LIMITS or condition.reason == FIELDS_IGNORED
        if is_remark and condition.reason not in told:
            yield condition.reason, condition.message


def summary(reservation: Reservation, claimed: int, home: str | None = None) -> Summary:
    """Return a reservation in words short enough for the columns of a table.

    Args:
        claimed: how many of its slots are.
        home: a namespace that owners need not say; None for that of the reservation.
    """
    resources = [
        f"{name} {quantity.show(name, amount)}"
        for name, amount in sorted(reservation.resources.items())
        if (name, amount) != ("pods", 1)
    ]
    home = reservation.ref.namespace if home is None else home
    named = [
        f"pod/{pod.name}" if pod.namespace == home else f"{pod.namespace}/pod/{pod.name}"
        for pod in sorted(reservation.owners)
    ]
    many = f"{reservation.slots} whole nodes" if reservation.slots > 1 else "1 whole node"
    whole = many if reservation.is_whole else ""
    times = f"{reservation.slots} × " if reservation.slots > 1 else ""
    return Summary(
        nodes=_shortly([part.node for part in reservation.parts]),
        resources=whole or times + _shortly(resources),
        owners=_shortly([*named, *(_rule(rule, home) for rule in reservation.rules)]),
        claimed=f"{claimed}/{reservation.slots_beside(claimed)}",
    )


def _rule(rule: OwnerRule, home: str) -> str:
    if rule.selector == NOTHING:
        return "nobody"
    parts = [f"pod/{rule.pod}"] if rule.pod else []
    if rule.controller != NO_CONTROLLER:
        parts.append(f"{rule.controller.kind.lower()}/{rule.controller.name}")
    for term in rule.selector.requirements:
        values = ",".join(sorted(term.values))
        is_equal = term.operator == "In" and len(term.values) == 1
        parts.append(
            f"{term.key}={values}" if is_equal else f"{term.key} {term.operator} {values}".rstrip()
        )
    where = "" if rule.namespace == home else f"{rule.namespace}/"
    return where + " and ".join(parts)


def _shortly(words: Sequence[str]) -> str:
    """Return the first of some words, and how many more there are."""
    told = ", ".join(words[:_MOST_TOLD])
    if len(told) > _MOST_CHARACTERS:
        told = f"{told[: _MOST_CHARACTERS - 1]}…"
    more = len(words) - _MOST_TOLD
    return f"{told} +{more}" if more > 0 else told


def _merged(claim: StatusClaim, told: StatusClaim | None) -> StatusClaim:
    """Return a claim with what was known of it before: its pod may be gone by now."""
    if told is None:
        return claim
    return StatusClaim(claim.pod or told.pod, claim.uid, claim.node or told.node, told.at)


def was_admitted(said: ReservationStatus) -> bool:
    """Return whether a status says that the quotas of its namespace let a Reservation hold."""
    return said.phase != INVALID and all(c.reason != QUOTA_EXCEEDED for c in said.conditions)


def is_newly_unbacked(before: ReservationStatus | None, after: ReservationStatus) -> bool:
    """Return whether a hold is not backed and was not said to be so before."""
    unbacked = {Phase.ACTIVE, Phase.FAILED}
    if after.phase not in unbacked or _is_backed(after):
        return False
    return before is None or before.phase != after.phase or _is_backed(before)


def is_violated(before: ReservationStatus | None, after: ReservationStatus) -> bool:
    """Return whether a hold was backed, and is not any more on a node that exists.

    One that was edited in between is another reservation.
    """
    if before is None or before.observed_generation != after.observed_generation:
        return False
    are_active = before.phase == after.phase == Phase.ACTIVE
    return are_active and _is_backed(before) and not _is_backed(after)


def _is_backed(status: ReservationStatus) -> bool:
    return any(c.type == "Backed" and c.status == "True" for c in status.conditions)
