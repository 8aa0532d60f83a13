"""Shell completion: names of reservations, nodes, namespaces and resources, asked of Reserver.

Pods and PodMoves are asked of the API server. A shell waits for it, so it is quick or silent:
whatever goes wrong offers nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from reserver.cli import connect, interrupt
from reserver.cli.options import taken
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connect import Session
    from reserver.cli.podmoves import Client

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


def pods(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of pods with a prefix, with their namespace if it has one."""

    async def names(client: Client, default: str) -> list[str]:
        from reserver.wire.k8s.objects import decode
        from reserver.wire.k8s.watch import ObjectList, metadata_of

        home, slash, _ = incomplete.rpartition("/")
        where = home or ctx.params.get("namespace") or default
        listed = decode(ObjectList, await client.get(f"/api/v1/namespaces/{where}/pods"))
        return [f"{home}{slash}{metadata_of(each).name}" for each in listed.items or ()]

    return _list(ctx, incomplete, names)


def owners(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return owners with a prefix: pods, which alone are told by their name."""
    kind, slash, name = incomplete.partition("/")
    is_pod = kind == "pod" and slash and "/" not in name
    return [f"pod/{each}" for each in pods(ctx, name)] if is_pod else []


def moves(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of PodMoves that have not ended, with a prefix."""

    async def names(client: Client, default: str) -> list[str]:
        from reserver.cli import move_view, podmoves

        found = await podmoves.listed(client, ctx.params.get("namespace") or default)
        return [move_view.name_of(each) for each in found if not move_view.is_over(each)]

    return _list(ctx, incomplete, names)


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
    async def asked(target: Target) -> list[str]:
        async with connect.connected(target, _DEADLINE_S) as session:
            return await ask(session)

    import reserver.client  # noqa: F401 - before the time runs

    if not ctx.params.get("address"):
        import kubernetes.aio.config  # noqa: F401 - as above

    return _soon(ctx, incomplete, asked)


def _list(
    ctx: typer.Context, incomplete: str, work: Callable[[Client, str], Awaitable[list[str]]]
) -> list[str]:
    async def listed(target: Target) -> list[str]:
        return await connect.calling(target, work)

    import kubernetes.aio.config  # noqa: F401 - before the time runs

    import reserver.kube.api.client  # noqa: F401 - as above

    return _soon(ctx, incomplete, listed)


def _soon(
    ctx: typer.Context, incomplete: str, names: Callable[[Target], Coroutine[Any, Any, list[str]]]
) -> list[str]:
    async def found() -> list[str]:
        async with asyncio.timeout(_DEADLINE_S):
            return await names(taken(Target, ctx.params))

    with suppress(Exception):
        offered = interrupt.run(found())
        return sorted({each for each in offered if each.startswith(incomplete)})[:_MOST]
    return []
