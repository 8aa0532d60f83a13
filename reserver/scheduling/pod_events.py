"""Events on pods that wait, have lost their seat or are recalled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reserver.cluster.pod import Pod
from reserver.reservations.enums import Policy
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.explain import reasons_against
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect, FilterVerdict, Recall, WaitsFor


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An Event on a pod, sent once for each cause.

    Attributes:
        reason: the reason of the Event.
        cause: the cause, for which it is sent once.
    """

    pod: Pod
    reason: str
    cause: str
    message: str


def event_for(pod: Pod, names: int, verdict: FilterVerdict, state: State) -> PodEvent | None:
    """Return the Event on a pod after a Filter call; None without one.

    Args:
        names: the number of names of the call.
        verdict: the verdict on the call.
    """
    if verdict.lost_seat is not None:
        return _lost(pod, verdict.lost_seat, state)
    if pod.has_resource_claims and (event := _without_devices(pod, state)):
        return event
    if verdict.waits_for is WaitsFor.ROOM and not verdict.effects:
        cause = _held_by(pod, verdict.in_the_way, state) or "many reservations"
        nodes = "1 node has" if names == 1 else f"{names} nodes have"
        message = f"{nodes} room for it that is held for others by {cause}"
        return PodEvent(pod, "HeldByReservations", cause, message)
    return None


def recalled(effects: Iterable[Effect]) -> Iterator[PodEvent]:
    """Yield the Events on borrowers that are about to be deleted for an owner."""
    for effect in effects:
        for each in effect.borrowers if isinstance(effect, Recall) else ():
            message = (
                "Reserver deletes it: it has borrowed room of a reservation whose owner has come"
            )
            yield PodEvent(each, "Recalled", effect.pod.uid, message)


def recalled_for_room(borrower: Pod) -> PodEvent:
    """Return the Event on a borrower that is about to be deleted before a hold starts."""
    message = "Reserver deletes it: it tolerates reserver.io/lent, and a reservation needs its room"
    return PodEvent(borrower, "Recalled", "room", message)


def _held_by(pod: Pod, refs: Iterable[Ref], state: State) -> str:
    """Return the reservations in the way of a pod, by names that its tenant may see."""
    words = dict.fromkeys(state.name_for(ref, pod) for ref in refs)
    return ", ".join(word.removeprefix("reservation ") for word in words)


def _without_devices(pod: Pod, state: State) -> PodEvent | None:
    """Return the Event on a seat without a pod's devices; None without a seat."""
    seat = next(iter(state.ledger.seats(pod)), None)
    if seat is None:
        return None
    message = f"reservation {seat.ref} holds its resources on {seat.node}, but no devices"
    why = "other pods may take those of its ResourceClaims before it comes"
    return PodEvent(pod, "DevicesNotHeld", seat.identity, f"{message}: {why}")


def _lost(pod: Pod, seat: Reservation, state: State) -> PodEvent:
    row = state.snapshot.row(seat.node)
    reasons = [
        reason
        for reason, rows in reasons_against(pod, state, state.ledger.seats(pod)).items()
        if row is not None and rows[row]
    ]
    unknown = "a constraint that Reserver does not judge"
    if pod.has_resource_claims:
        unknown = "perhaps the devices of its ResourceClaims, which no reservation holds"
    why = ", ".join(reasons) or unknown
    then = "waits for it" if seat.policy is Policy.REQUIRE else "may land elsewhere"
    message = f"kube-scheduler refuses its seat on {seat.node} (reservation {seat.ref}): {why}"
    return PodEvent(pod, "SeatRefused", f"{seat.identity}: {why}", f"{message}; it {then}")
