"""Computes and reads the status of a Reservation object."""

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
from reserver.reservations.outcome import LastStatus
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
from reserver.stores.codec import lifetime_codec
from reserver.stores.codec.placement_codec import PartObject
from reserver.stores.configmap.status_codec import INVALID
from reserver.stores.entries import EntryProblem
from reserver.stores.object.codec import MoreClaims, ReservationStatus, StatusClaim, Summary

WITHIN_LIMITS = "WithinLimits"
"""The condition of a Reservation that holds although it exceeds a limit; absent on all others."""

_MOST_NAMED = 5
"""Most nodes, resources or owners that a summary names."""

_MOST_CHARACTERS = 100
"""Most characters of each part of a summary, which is a column of `kubectl get`."""


def invalid(
    problem: EntryProblem, before: ReservationStatus | None, generation: int, now: float
) -> ReservationStatus:
    """Return the status of an invalid Reservation, which is not enforced."""
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
    """Return the status of a Reservation whose evaluation failed; other parts stay as before."""
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
    """Return the status of an enforced Reservation.

    Args:
        reservation: the reservation with its placements.
        status: its state in the ledger.
        claims: the claimed slots; a claim in `before` keeps its time.
        before: the former status; None without one.
        generation: the generation of the spec.
        now: unix seconds.
    """
    say = ConditionWriter(before.conditions if before else (), generation, now).condition
    former = {claim.uid: claim for claim in before.claims} if before else {}
    merged = sorted((_merged(c, former.get(c.uid)) for c in claims), key=_sort_key)
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
        occurrences=lifetime_codec.show_occurrences(status.occurrences, recurrence)
        if recurrence
        else None,
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
    """Return the node of each claim by UID or mark; empty if no longer known."""
    more = {pod: each.node for each in status.more_claims or () for pod in parted_marks(each.pods)}
    return {claim.uid: claim.node for claim in status.claims} | more


def latest(status: ReservationStatus) -> LastStatus | None:
    """Return the last status of an occurrence; None without a schedule."""
    if not status.occurrences:
        return None
    named = {claim.uid: claim for claim in status.claims}
    claims = (
        EndedClaim(uid, named[uid].pod, node, _at(named[uid]))
        if uid in named
        else EndedClaim(uid, node=node)
        for uid, node in recorded(status).items()
    )
    return LastStatus(status.occurrences[0].moments, status.phase, tuple(claims))


def _at(claim: StatusClaim) -> float:
    with suppress(InvalidInput):  # Not written by Reserver.
        return parse_moment(claim.at)
    return 0.0


def digest(reservation: Reservation, status: ReservationStatus) -> str:
    """Return the digest for a status: of the reservation, or of an occurrence if it recurs."""
    if reservation.recurrence is None or not status.occurrences:
        return reservation.digest
    return occurrence_digest(reservation.digest, status.occurrences[0].start)


def idle_since(status: ReservationStatus) -> float:
    """Return the start of the idle time in a status, in unix seconds; 0 if there is none."""
    with suppress(InvalidInput):  # Not written by Reserver.
        return parse_moment(status.idle_since) if status.idle_since else 0.0
    return 0.0


def _sort_key(claim: StatusClaim) -> tuple[bool, str, str]:
    """Return the sort key of a claim: by time, with claims known only by their mark last."""
    return is_mark(claim.uid), claim.at, claim.uid


def _more(claims: Iterable[StatusClaim]) -> list[MoreClaims]:
    pods: dict[str, list[str]] = {}
    for claim in claims:
        pods.setdefault(claim.node, []).append(claim.uid)
    return [MoreClaims(node, joined_marks(each)) for node, each in sorted(pods.items())]


def new_remarks(
    before: ReservationStatus | None, after: ReservationStatus
) -> Iterator[tuple[str, str]]:
    """Yield reason and message of newly exceeded limits and newly ignored fields."""
    former = {condition.reason for condition in before.conditions} if before else set()
    for condition in after.conditions:
        is_remark = condition.type == WITHIN_LIMITS or condition.reason == FIELDS_IGNORED
        if is_remark and condition.reason not in former:
            yield condition.reason, condition.message


def summary(reservation: Reservation, claimed: int, home: str | None = None) -> Summary:
    """Return a reservation in words short enough for the columns of a table.

    Args:
        claimed: the number of claimed slots.
        home: the namespace to omit from owners; None for the reservation's own namespace.
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
    """Return the first words, joined and shortened, and the number of further words."""
    text = ", ".join(words[:_MOST_NAMED])
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[: _MOST_CHARACTERS - 1]}…"
    more = len(words) - _MOST_NAMED
    return f"{text} +{more}" if more > 0 else text


def _merged(claim: StatusClaim, before: StatusClaim | None) -> StatusClaim:
    """Return a claim, completed from the former status: its pod may be deleted by now."""
    if before is None:
        return claim
    return StatusClaim(claim.pod or before.pod, claim.uid, claim.node or before.node, before.at)


def was_admitted(status: ReservationStatus) -> bool:
    """Return whether a status shows that the quotas of its namespace admitted a Reservation."""
    return status.phase != INVALID and all(c.reason != QUOTA_EXCEEDED for c in status.conditions)


def is_newly_unbacked(before: ReservationStatus | None, after: ReservationStatus) -> bool:
    """Return whether a hold is not backed, and was not reported before."""
    unbacked = {Phase.ACTIVE, Phase.FAILED}
    if after.phase not in unbacked or _is_backed(after):
        return False
    return before is None or before.phase != after.phase or _is_backed(before)


def is_violated(before: ReservationStatus | None, after: ReservationStatus) -> bool:
    """Return whether a hold has lost its room on an existing node.

    A Reservation that was edited in between counts as another reservation.
    """
    if before is None or before.observed_generation != after.observed_generation:
        return False
    are_active = before.phase == after.phase == Phase.ACTIVE
    return are_active and _is_backed(before) and not _is_backed(after)


def _is_backed(status: ReservationStatus) -> bool:
    return any(c.type == "Backed" and c.status == "True" for c in status.conditions)
