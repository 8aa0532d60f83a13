"""`reserver completion`: the script for a shell, and the names that Tab offers.

Names of reservations, nodes, namespaces and resources come from Reserver, names of pods and
PodMoves from the API server. A shell waits for them, so an error offers nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import completion as scripts

from reserver.cli import connection, interrupt
from reserver.cli.flag_groups import taken
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connection import Session
    from reserver.cli.podmoves import KubeClient

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


Completion = Callable[[typer.Context, str], list[str]]
"""Returns the words that a prefix may stand for, at most `_MOST`."""


def _of_reserver(names: Callable[[Session, str], Coroutine[Any, Any, list[str]]]) -> Completion:
    """Return the completion by names that Reserver gives, given the prefix."""

    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        async def asked(target: Target) -> list[str]:
            async with connection.connected(target, _DEADLINE_S) as session:
                return await names(session, incomplete)

        import reserver.client  # noqa: F401 - before the time runs

        if not ctx.params.get("address"):
            import kubernetes.aio.config  # noqa: F401 - as above

        return _soon(ctx, incomplete, asked)

    return offer


@_of_reserver
async def reservations(session: Session, incomplete: str) -> list[str]:
    """Return names of reservations, or ids if the prefix looks like one."""
    found = [each async for each in session.client.list()]
    return [each.id if "/" in incomplete else each.name for each in found]


@_of_reserver
async def removed(session: Session, _: str) -> list[str]:
    """Return names of reservations that were removed."""
    return [each.name async for each in session.client.history() if each.spec]


@_of_reserver
async def nodes(session: Session, _: str) -> list[str]:
    """Return names of nodes."""
    return [each.node async for each in session.client.capacity.nodes()]


@_of_reserver
async def namespaces(session: Session, _: str) -> list[str]:
    """Return namespaces of owners, and with a quota."""
    owners = [o.namespace async for each in session.client.list() for o in each.spec.owners]
    return owners + [each.namespace async for each in session.client.capacity.quotas()]


@_of_reserver
async def resources(session: Session, _: str) -> list[str]:
    """Return the resources of nodes."""
    found = [each async for each in session.client.capacity.nodes()]
    return [name for each in found for name in each.resources]


def pods(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of pods with a prefix, with their namespace if it has one."""

    async def names(client: KubeClient, default: str) -> list[str]:
        from reserver.k8s.objects.objects import ObjectList, decode, metadata_of

        home, slash, _ = incomplete.rpartition("/")
        where = home or ctx.params.get("namespace") or default
        listed = decode(ObjectList, await client.get(f"/api/v1/namespaces/{where}/pods"))
        return [f"{home}{slash}{metadata_of(each).name}" for each in listed.items or ()]

    return _list(ctx, incomplete, names)


def owners(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return owners with a prefix: pods only, as other owners have labels or kinds."""
    kind, slash, name = incomplete.partition("/")
    is_pod = kind == "pod" and slash and "/" not in name
    return [f"pod/{each}" for each in pods(ctx, name)] if is_pod else []


def moves(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of PodMoves that have not ended, with a prefix."""

    async def names(client: KubeClient, default: str) -> list[str]:
        from reserver.cli import podmoves

        found = await podmoves.listed(client, ctx.params.get("namespace") or default)
        return [podmoves.name_of(each) for each in found if not podmoves.is_over(each)]

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


def _list(
    ctx: typer.Context, incomplete: str, work: Callable[[KubeClient, str], Awaitable[list[str]]]
) -> list[str]:
    async def listed(target: Target) -> list[str]:
        return await connection.calling(target, work)

    import kubernetes.aio.config  # noqa: F401 - before the time runs

    import reserver.k8s.client  # noqa: F401 - as above

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


_FISH = """\
function __reserver_complete
    set --local typed (commandline --cut-at-cursor --current-process)
    set --local offered (env _RESERVER_COMPLETE=complete_fish \\
        _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS="$typed" reserver)
    if set --query offered[1]
        printf '%s\\n' $offered
    else
        __fish_complete_path (commandline --current-token)
    end
end

complete --command reserver --no-files --arguments '(__reserver_complete)'
"""
"""Typer's own script for fish starts the command twice for each Tab, which is felt."""


class Shell(StrEnum):
    """A shell that completes words."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell,
        typer.Argument(
            metavar="SHELL", help="Your shell: bash, zsh or fish.", case_sensitive=False
        ),
    ],
) -> None:
    """Print the shell script that completes commands, options and names.

    The script completes names of reservations, nodes and namespaces if Reserver answers within two
    seconds, and names of pods and PodMoves if the API server does. kubectl completes
    `kubectl reserver` without a script.

    Examples:
        source <(reserver completion bash)    # in ~/.bashrc
        source <(reserver completion zsh)     # in ~/.zshrc, after compinit
        reserver completion fish > ~/.config/fish/completions/reserver.fish
    """
    if shell is Shell.FISH:
        typer.echo(_FISH, nl=False)
        return
    typer.echo(
        scripts.get_completion_script(  # type: ignore[attr-defined]
            prog_name="reserver", complete_var="_RESERVER_COMPLETE", shell=shell.value
        )
    )
