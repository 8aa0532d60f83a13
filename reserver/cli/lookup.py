"""Look-ups of reservations by the names and ids of the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from reserver.cli import failure, formatting
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.progress import progress
from reserver.client import EVERYTHING, CallFailed, Client, ReservationInfo, Selection

_NOT_THERE = "NO_SUCH_RESERVATION"
_MOST_SHOWN = 5

T = TypeVar("T")


async def by_name(
    client: Client,
    name: str,
    call: Callable[[str], Awaitable[T]],
    selection: Selection = EVERYTHING,
) -> T:
    """Call with a name or an id; with the id of whatever `get` shows under that name, otherwise.

    Reserver itself knows the names of what its clients created. Others have an id, and `get` shows
    the last part of it.

    Args:
        client: of Reserver's gRPC API.
        name: or id.
        call: what to call.
        selection: among which reservations.

    Raises:
        Failed: none is called that, or several are.
        CallFailed: whatever else the call raised.
    """
    key, bracket, _ = name.partition("[")
    is_item = bracket and "/" not in key  # As `get` shows an item of a list.
    if is_item or selection != EVERYTHING:
        missing = f"there is no reservation {name!r}"
        return await call(await _id(client, name, missing, selection))
    try:
        return await call(name)
    except CallFailed as exc:
        if exc.reason != _NOT_THERE:
            raise
        return await call(await _id(client, name, exc.message, selection))


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
    raise Failed(ExitStatus.REFUSED, problem)


async def similar_node(client: Client, node: str) -> str:
    """Return the question whether another node is meant; empty if this one exists."""
    if not node:
        return ""
    try:
        names = [each.node async for each in client.capacity.nodes()]
    except CallFailed:  # Who may create need not have the right to read nodes.
        return ""
    near = get_close_matches(node, names, 1)
    return f"did you mean --node {near[0]}?" if near and near[0] != node else ""


async def fetch(
    client: Client, names: Sequence[str], selection: Selection
) -> tuple[list[ReservationInfo], list[Failed]]:
    """Return the reservations of some names or ids, and why not the others.

    Raises:
        CallFailed: there is no answer.
    """
    found, missing = [], []
    async with progress("Asking for reservations"):
        for name in names:
            try:
                found.append(await by_name(client, name, client.get, selection))
            except (CallFailed, Failed) as exc:
                if failure.is_without_answer(exc):
                    raise
                missing.append(failure.of(exc))
    return found, missing
