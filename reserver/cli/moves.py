"""`reserver moves`: lists, pauses and resumes PodMoves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from reserver.cli import completion, output, podmoves
from reserver.cli.failure import ExitStatus, Failed, Failures, WrongUsage
from reserver.cli.help import App
from reserver.cli.options import NamespaceOption, require_name
from reserver.cli.output import Output, OutputOption
from reserver.cli.podmoves import Document, KubeClient
from reserver.cli.target import Target

app = App()


@app.callback(invoke_without_command=True)
def moves(
    ctx: typer.Context,
    target: Target,
    namespace: NamespaceOption = "",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="All namespaces.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print each change as it happens.")
    ] = False,
    form: OutputOption = Output.TABLE,
) -> None:
    """List moves of pods and their phases; pause and resume moves.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver moves -A
        reserver moves -n shop --watch
    """
    if ctx.invoked_subcommand is not None:
        _require_options_after(ctx)
        return

    async def work(client: KubeClient, default: str) -> None:
        where = "" if everywhere else namespace or default
        if watch:
            await follow(client, where, form, everywhere=everywhere)
        else:
            podmoves.show(await podmoves.listed(client, where), form, everywhere=everywhere)

    podmoves.run(target, work)


NamesArgument = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names of PodMoves.", autocompletion=completion.moves),
]


@app.command()
def pause(
    target: Target,
    names: NamesArgument,
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Pause moves: a paused move evicts nothing, but its timeout keeps running.

    Exit status: 0 done; 1 refused; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver moves pause web-0-x7k2p -n shop
    """
    _set(target, names, namespace, form, paused=True)


@app.command()
def resume(
    target: Target,
    names: NamesArgument,
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Resume paused moves.

    Exit status: 0 done; 1 refused; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver moves resume web-0-x7k2p -n shop
    """
    _set(target, names, namespace, form, paused=False)


def _require_options_after(ctx: typer.Context) -> None:
    """Refuse options before `pause` or `resume`, which have options of their own."""
    for each in ctx.command.params:
        source = ctx.get_parameter_source(str(each.name))
        if source is not None and source.name == "COMMANDLINE":
            flag, command = max(each.opts, key=len), ctx.invoked_subcommand
            raise WrongUsage(f"{flag}: belongs after {command}; write it there")


def _set(target: Target, names: list[str], namespace: str, form: Output, *, paused: bool) -> None:
    for name in names:
        require_name("NAME", name, "a PodMove's name")

    async def change(client: KubeClient, default: str) -> None:
        await _pause_each(client, namespace or default, names, form, paused=paused)

    podmoves.run(target, change)


async def _pause_each(
    client: KubeClient, namespace: str, names: Sequence[str], form: Output, *, paused: bool
) -> None:
    """Pause or resume PodMoves; failures are independent."""
    changed: list[Document] = []
    failures = Failures()
    for name in names:
        try:
            changed.append(await podmoves.pause(client, namespace, name, paused=paused))
        except Failed as exc:
            failures.append(exc)
            if exc.status is ExitStatus.UNREACHABLE:
                break
        else:
            if not output.is_for_programs(form):
                typer.echo(f"{name} {'paused' if paused else 'resumed'}")
    if output.is_for_programs(form):
        podmoves.show(changed, form)
    failures.raise_all()


async def follow(
    client: KubeClient,
    namespace: str,
    form: Output,
    *,
    everywhere: bool,
    look_s: float = podmoves.LOOK_S,
) -> None:
    """Print moves, of a namespace or of all, then each change until interrupted.

    A program gets an object for each from the beginning.
    """
    said: dict[str, str] = {}
    if not output.is_for_programs(form):
        found = await podmoves.listed(client, namespace)
        podmoves.show(found, form, everywhere=everywhere)
        said = {each["metadata"]["uid"]: podmoves.summary(each) for each in found}
    while True:
        for each in await podmoves.listed(client, namespace):
            line = podmoves.summary(each)
            if said.get(each["metadata"]["uid"]) != line:
                said[each["metadata"]["uid"]] = line
                _print_change(each, line, form)
        await asyncio.sleep(look_s)


def _print_change(move: Document, line: str, form: Output) -> None:
    if form is Output.NAME:
        output.names([podmoves.name_of(move)])
    elif output.is_for_programs(form):
        output.item(move, form)
    else:
        typer.echo(line)
