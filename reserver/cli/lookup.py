"""Look-ups of reservations by their names and ids, and of their places in the line for a node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TypeVar

from reserver.cli import formatting
from reserver.cli.connection import Session
from reserver.cli.failure import Failures, Refused
from reserver.cli.terminal import progress
from reserver.client import CallFailed, Client, Phase, ReservationInfo, Selection

_NOT_ALLOWED = "NOT_ALLOWED"
_NO_SUCH = "NO_SUCH_RESERVATION"
_ELSEWHERE = {_NO_SUCH, _NOT_ALLOWED}
"""Reasons for which a reservation may be another one: the caller has rights in some namespaces."""

_MOST_SHOWN = 5

T = TypeVar("T")


async def by_name(
    session: Session, name: str, call: Callable[[str], Awaitable[T]], namespace: str = ""
) -> T:
    """Call with an id, or with the id of the reservation of a name.

    A name is looked up in the namespace of `-n` or else of the kubeconfig's context, then in
    Reserver's own, and then among all reservations that `get` shows.

    Args:
        name: the name or id.
        namespace: the namespace of `-n`; empty for any.

    Raises:
        Failed: no reservation has the name, or several have it.
        CallFailed: the call failed for another reason.
    """
    missing, ended = f"there is no reservation {name!r}", ""
    for id_ in _ids(name, namespace, session.namespace):
        try:
            return await call(id_)
        except CallFailed as exc:
            if exc.reason not in _ELSEWHERE or (exc.reason == _NOT_ALLOWED and id_ == name):
                raise
            if exc.reason == _NO_SUCH and exc.message != f"there is no reservation {id_!r}":
                ended = ended or exc.message  # It says what became of the reservation.
            missing = exc.message if id_ == name else missing
    selection = Selection(owner_namespace=namespace)
    return await call(await _id(session.client, name, ended or missing, selection))


def _ids(name: str, namespace: str, of_context: str) -> list[str]:
    """Return the ids that a name may stand for, without listing reservations."""
    key, bracket, _ = name.partition("[")
    if bracket and "/" not in key:  # As `get` shows an item of a list.
        return []
    if "/" in name:
        return [] if namespace else [name]
    return [f"{namespace}/{name}"] if namespace else [f"{of_context}/{name}", name]


async def _id(client: Client, name: str, problem: str, selection: Selection) -> str:
    """Return the id of the one reservation that is shown under a name."""
    shown: dict[str, list[str]] = {}
    async with progress("Looking for its id"):
        async for each in client.list(selection):
            for called in {each.name, formatting.short_name(each), each.id}:
                shown.setdefault(called, []).append(each.id)
    ids = shown.get(name, [])
    if len(ids) == 1:
        return ids[0]
    if ids:
        more = f" and {len(ids) - _MOST_SHOWN} more" if len(ids) > _MOST_SHOWN else ""
        known = ", ".join(sorted(ids)[:_MOST_SHOWN])
        problem = f"{name}: {len(ids)} reservations have that name; give an id: {known}{more}"
    elif similar := get_close_matches(name, shown, _MOST_SHOWN):
        problem = f"{problem}; similar names: {', '.join(similar)}"
    raise Refused(problem)


async def fetch(
    session: Session, names: Sequence[str], failures: Failures, namespace: str = ""
) -> list[ReservationInfo]:
    """Return the reservations of some names or ids (`by_name`), and note why not the others.

    Raises:
        CallFailed: there is no answer.
    """
    found = []
    async with progress("Asking for reservations"):
        for name in names:
            with failures.noted():
                found.append(await by_name(session, name, session.client.get, namespace))
    return found


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _waits_for_room(reservation: ReservationInfo) -> bool:
    """Return whether a reservation has its place, and takes effect as room appears there."""
    return reservation.phase is Phase.ACTIVE and not reservation.is_backed


def place_in_line(reservation: ReservationInfo, others: Iterable[ReservationInfo]) -> str:
    """Return a reservation's place in the line for its node; empty if it waits in none.

    The earliest written reservation is backed first.
    """
    if not _waits_for_room(reservation) or len(reservation.placements) != 1:
        return ""
    node = reservation.placements[0].node
    before = sorted(
        _key(each)
        for each in others
        if _waits_for_room(each)
        and any(part.node == node for part in each.placements)
        and _key(each) < _key(reservation)
    )
    number = len(before)
    said = _ORDINALS[number] if number < len(_ORDINALS) else f"number {number + 1}"
    after = f", after {before[-1][-1]}" if before else ""
    return f"is {said} in line for {node}{after}"


async def find_in_line(client: Client, reservation: ReservationInfo) -> str:
    """Return a reservation's place in the line for its node."""
    if not _waits_for_room(reservation) or len(reservation.placements) != 1:
        return ""
    of_node = Selection(node=reservation.placements[0].node)
    return place_in_line(reservation, [each async for each in client.list(of_node)])


def _key(reservation: ReservationInfo) -> tuple[datetime, str, str]:
    return reservation.since or _LONG_AGO, reservation.id, reservation.name
