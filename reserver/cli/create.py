"""`reserver create`: creates reservations, or checks whether they would fit."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any, NamedTuple

import typer

from reserver.cli import (
    completion,
    creating,
    failure,
    interrupt,
    lookup,
    output,
    serialization,
    times,
)
from reserver.cli.connection import Session, default_namespace, run
from reserver.cli.create_requests import CreateRequests, NewReservation, namespace_of
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.flag_errors import flag_of
from reserver.cli.options import DryRun, NamespaceOption
from reserver.cli.output import Output, OutputOption
from reserver.cli.selection import FILES
from reserver.cli.serialization import merged
from reserver.cli.spec_flags import SpecFlags
from reserver.cli.target import Target
from reserver.errors import InvalidInput

_WAIT_S = 600.0
"""How long a command on a terminal waits by default, in seconds."""

_SETTLE_S = 1.0
"""The same elsewhere: so long a new reservation may take to find its place."""


def create(
    spec: SpecFlags,
    target: Target,
    name: Annotated[
        str, typer.Argument(help="Name of the reservation.", metavar="NAME", show_default=False)
    ] = "",
    filename: Annotated[list[str] | None, FILES] = None,
    template: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Copy this reservation, but not its times; flags change it.",
            autocompletion=completion.reservations,
        ),
    ] = "",
    namespace: NamespaceOption = "",
    whole_set: Annotated[
        bool, typer.Option("--set", help="Create all or none, and only if all fit now.")
    ] = False,
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            metavar="DURATION",
            help="How long to wait until it is in force; alone: 10m. Default: 10m on a terminal, "
            "else 1s; with --force 0.",
        ),
    ] = "",
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Refuse what does not fit now, instead of keeping it."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Create it even if it can never fit.")
    ] = False,
    request_id: Annotated[
        str,
        typer.Option(metavar="ID", help="Key with which the command may be run again."),
    ] = "",
    dry_run: Annotated[
        DryRun,
        typer.Option(
            "--dry-run",
            help="Create nothing: print it, with -o yaml as a manifest (client, or alone), or say "
            "whether it would fit (server).",
            case_sensitive=False,
        ),
    ] = DryRun.NONE,
    form: OutputOption = Output.TABLE,
) -> None:
    """Create reservations, and wait until their holds are in force.

    Flags or files describe it (docs/reservations.md); a file may be what `reserver get -o yaml`
    prints.

    Exit status: 0 created and in force, or to start later; 1 refused; 2 wrong usage; 3 Reserver
    cannot be reached; 4 no room, on nodes or in the quota; 5 created, and it waits for room.

    Examples:
        reserver create web-1 --node worker-3 --owner pod/web-0 --cpu 2 --ttl 1h
        reserver create train --owner app=x --resource nvidia.com/gpu=1 --slots 2
        reserver create web-1 --owner pod/web-0 --cpu 2 --dry-run -o yaml
        reserver create web-2 --from web-1 --owner pod/web-1 --ttl 1h
        reserver create -f pair.yaml --set
    """
    asked = CreateRequests.of(name, filename or (), spec, namespace)
    if template and (filename or dry_run is DryRun.CLIENT):
        other = "--filename" if filename else "--dry-run=client"
        failure.end(Failed(ExitStatus.USAGE, f"--from: excludes {other}; leave one of them out"))
    if dry_run is DryRun.CLIENT:
        _show_manifests(target, asked, form)
        return
    try:
        wait_s = _wait_s(wait, force=force)
    except Failed as exc:
        failure.end(exc)
    way = _Way(whole_set, no_wait, force, request_id, dry_run, wait_s, template)
    run(target, lambda session: _create(session, asked, way, form))


def _show_manifests(target: Target, asked: CreateRequests, form: Output) -> None:
    """Print the manifests of a dry run, without a call."""
    try:
        manifests = asked.manifests(interrupt.run(default_namespace(target)))
    except Failed as exc:
        failure.end(exc)
    if form is Output.NAME:
        output.names([each["metadata"]["name"] for each in manifests])
    elif output.is_for_programs(form):
        output.objects(manifests, form)
    else:
        for each in manifests:
            typer.echo(f"{each['metadata']['name']} created (dry run)")


class _Way(NamedTuple):
    """The options of `create` besides the reservation."""

    whole_set: bool
    no_wait: bool
    force: bool
    request_id: str
    dry_run: DryRun
    wait_s: float | None
    template: str


def _wait_s(wait: str, *, force: bool) -> float | None:
    """Return for how long to wait, in seconds; None if it does not matter whether it is in force.

    Who insists on what can never fit does not wait for it.
    """
    if wait:
        return times.duration("--wait", wait).total_seconds()
    if force:
        return None
    return _WAIT_S if sys.stdout.isatty() else _SETTLE_S


async def _create(session: Session, asked: CreateRequests, way: _Way, form: Output) -> None:
    if way.template:
        wanted = await copied(session, way.template, asked)
    else:
        wanted = asked.reservations(session.namespace)
    if way.request_id and len(wanted) > 1 and not way.whole_set:
        problem = "names one request, and these are several"
        raise Failed(ExitStatus.USAGE, f"--request-id: {problem}; give --set, too")
    if way.dry_run is DryRun.SERVER:
        await creating.check_fit(session.client, wanted, form)
    elif way.whole_set:
        await creating.create_set(session.client, wanted, form, way.request_id)
    else:
        await creating.create_each(
            session.client,
            wanted,
            form,
            way.request_id,
            no_wait=way.no_wait,
            force=way.force,
            wait_s=way.wait_s,
        )


_TIMES = {"startsAt", "expiresAt", "ttl"}


async def copied(session: Session, template: str, asked: CreateRequests) -> list[NewReservation]:
    """Return the copy of a reservation, changed as flags say.

    Raises:
        Failed: there is no such reservation, or a flag is wrong.
    """
    namespace = asked.namespace or session.namespace
    changes = asked.flags.changes(namespace)
    old = await lookup.by_name(session, template, session.client.get, asked.namespace)
    before: dict[str, Any] = serialization.show_spec(old.spec)
    document = merged({key: each for key, each in before.items() if key not in _TIMES}, changes)
    try:
        spec = serialization.read(document, asked.name, namespace, time.time())
    except InvalidInput as exc:
        raise flag_of(exc) from exc
    return [NewReservation(asked.name, namespace_of(spec, asked.namespace), spec)]
