"""The line of reservations that wait for room on a node, and owners that have landed already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from reserver.cli import failure
from reserver.client import CallFailed, Client, Phase, PodOwner, ReservationInfo, Selection

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_MOST_REPORTED = 5
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def waits_for_room(reservation: ReservationInfo) -> bool:
    """Return whether a reservation has its place, and takes effect as room appears there."""
    return reservation.phase is Phase.ACTIVE and not reservation.is_backed


def place(reservation: ReservationInfo, others: Iterable[ReservationInfo]) -> str:
    """Return a reservation's place in the line for its node; empty if it waits in none.

    The earliest written reservation is backed first.
    """
    if not waits_for_room(reservation) or len(reservation.placements) != 1:
        return ""
    node = reservation.placements[0].node
    before = sorted(
        _key(each)
        for each in others
        if waits_for_room(each)
        and any(part.node == node for part in each.placements)
        and _key(each) < _key(reservation)
    )
    number = len(before)
    said = _ORDINALS[number] if number < len(_ORDINALS) else f"number {number + 1}"
    after = f", after {before[-1][-1]}" if before else ""
    return f"is {said} in line for {node}{after}"


async def find(client: Client, reservation: ReservationInfo) -> str:
    """Return a reservation's place in the line for its node."""
    if not waits_for_room(reservation) or len(reservation.placements) != 1:
        return ""
    of_node = Selection(node=reservation.placements[0].node)
    return place(reservation, [each async for each in client.list(of_node)])


async def report(client: Client, made: Sequence[ReservationInfo]) -> None:
    """Report on standard error why new reservations may not work as expected."""
    for each in made[:_MOST_REPORTED]:
        with suppress(CallFailed):  # Who may create need not have the right to read.
            if place_in_line := await find(client, each):
                failure.report(f"{each.name}: {place_in_line}")
            for owner in each.spec.owners[:_MOST_REPORTED]:
                if isinstance(owner, PodOwner) and (said := await _runs(client, owner)):
                    failure.report(f"{each.name}: owner {owner.namespace}/{owner.name}: {said}")


async def _runs(client: Client, owner: PodOwner) -> str:
    """Return that a pod runs already, and so claims nothing; empty if it does not."""
    try:
        explanation = await client.capacity.explain(owner.namespace, owner.name)
    except CallFailed:  # There is no such pod yet: the usual case.
        return ""
    summary = str(explanation["summary"])
    is_bound = summary.startswith("it is on ")
    return f"{summary}; the next pod of that name may claim the reservation" if is_bound else ""


def _key(reservation: ReservationInfo) -> tuple[datetime, str, str]:
    return reservation.since or _LONG_AGO, reservation.id, reservation.name
