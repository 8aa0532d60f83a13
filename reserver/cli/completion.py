"""Shell completion: names of reservations, nodes, namespaces and resources, asked of Reserver.

A shell waits for it, so it is quick or silent: whatever goes wrong offers nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reserver.cli.options import taken
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connect import Session

_DEADLINE_S = 2.0
_MOST = 200
_FIELDS = (
    "name",
    "spec.expiresAt",
    "spec.node",
    "spec.policy",
    "spec.resources.cpu",
    "spec.slots",
    "spec.startsAt",
    "status.backed",
    "status.phase",
)


def reservations(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of reservations with a prefix, or ids if it looks like one."""

    async def names(session: Session) -> list[str]:
        found = [each async for each in session.client.list()]
        return [each.id if "/" in incomplete else each.name for each in found]

    return _offer(ctx, incomplete, names)


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of nodes with a prefix."""

    async def names(session: Session) -> list[str]:
        return [each.node async for each in session.client.capacity.nodes()]

    return _offer(ctx, incomplete, names)


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return namespaces with a prefix: those of owners, and those that have a quota."""

    async def names(session: Session) -> list[str]:
        owners = [o.namespace async for each in session.client.list() for o in each.spec.owners]
        return owners + [each.namespace async for each in session.client.capacity.quotas()]

    return _offer(ctx, incomplete, names)


def resources(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the resources of nodes with a prefix."""

    async def names(session: Session) -> list[str]:
        found = [each async for each in session.client.capacity.nodes()]
        return [name for each in found for name in each.resources]

    return _offer(ctx, incomplete, names)


def fields(incomplete: str) -> list[str]:
    """Return fields of reservations to sort by, with a prefix."""
    return [each for each in _FIELDS if each.startswith(incomplete)]


def files(incomplete: str) -> list[str]:
    """Return files and folders with a prefix."""
    folder, _, start = incomplete.rpartition("/")
    base = Path(f"{folder}/" if "/" in incomplete else ".")
    with suppress(OSError):
        return sorted(
            f"{incomplete[: len(incomplete) - len(start)]}{each.name}{'/' if each.is_dir() else ''}"
            for each in os.scandir(base)
            if each.name.startswith(start)
        )[:_MOST]
    return []


def _offer(
    ctx: typer.Context, incomplete: str, ask: Callable[[Session], Awaitable[list[str]]]
) -> list[str]:
    with suppress(Exception):
        found = asyncio.run(_ask(ctx, ask))
        return sorted({each for each in found if each.startswith(incomplete)})[:_MOST]
    return []


async def _ask(ctx: typer.Context, ask: Callable[[Session], Awaitable[list[str]]]) -> list[str]:
    from reserver.cli.connect import connected

    target = taken(Target, ctx.params)
    async with asyncio.timeout(_DEADLINE_S), connected(target, _DEADLINE_S) as session:
        return await ask(session)
