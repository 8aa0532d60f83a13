"""`reserver create`: creates reservations, or checks whether they would fit."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from reserver.cli import completion, creating, interrupt, lookup, output, serialization, times
from reserver.cli.connection import Session, default_namespace, run
from reserver.cli.create_requests import CreateRequests, NewReservation, namespace_of, read_flags
from reserver.cli.failure import WrongUsage
from reserver.cli.options import FILES, DryRun, NamespaceOption
from reserver.cli.output import Output, OutputOption
from reserver.cli.serialization import merged
from reserver.cli.spec_flags import SpecFlags
from reserver.cli.target import Target
from reserver.settings.flags import flag

_WAIT_S = 600.0
"""Default wait of a command on a terminal, in seconds."""

_SETTLE_S = 1.0
"""The same elsewhere: so long a new reservation may take to find its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFlags:
    """The flags of `create`, without the reservation's."""

    from_: str = flag(
        "Copy this reservation without its times; flags replace its fields.",
        default="",
        metavar="NAME",
        complete=completion.reservations,
    )
    set_: bool = flag("Create all or none, and only if all fit now.", default=False)
    wait: str = flag(
        "Longest wait for the hold. Default: 10m on a terminal, else 1s.",
        default="",
        metavar="DURATION",
    )
    no_wait: bool = flag(
        "Refuse a reservation that does not fit now, instead of having it wait.", default=False
    )
    force: bool = flag("Create the reservation even if it can never fit.", default=False)
    request_id: str = flag("Key that makes the command safe to repeat.", default="", metavar="ID")
    dry_run: DryRun = flag(
        "Create nothing: print the reservation (client, the default), or ask if it fits (server).",
        default=DryRun.NONE,
    )

    def wait_s(self) -> float | None:
        """Return for how long to wait, in seconds; None if it need not be in force.

        With ``--force`` the command does not wait for a reservation that can never fit.
        """
        if self.wait:
            return times.duration("--wait", self.wait).total_seconds()
        if self.force:
            return None
        return _WAIT_S if sys.stdout.isatty() else _SETTLE_S


def create(
    target: Target,
    spec: SpecFlags,
    flags: CreateFlags,
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the reservation.", metavar="NAME", rich_help_panel="Reservation"
        ),
    ] = "",
    filename: Annotated[list[str] | None, FILES] = None,
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Create reservations, and wait until their holds are in force.

    Describe a reservation by flags, or in files; `reserver get -o yaml` prints such files
    (docs/reservations.md).

    Exit status: 0 created and in force, or to start later; 1 refused; 2 wrong usage; 3 Reserver
    cannot be reached; 4 no room, on nodes or in the quota; 5 created, but waiting for room.

    Examples:
        reserver create web-1 --node worker-3 --owner pod/web-0 --cpu 2 --ttl 1h
        reserver create train --owner app=x --resource nvidia.com/gpu=1 --slots 2
        reserver create web-1 --owner pod/web-0 --cpu 2 --dry-run -o yaml
        reserver create web-2 --from web-1 --owner pod/web-1 --ttl 1h
    """
    asked = CreateRequests.of(name, filename or (), spec, namespace)
    if flags.from_ and (filename or flags.dry_run is DryRun.CLIENT):
        other = "--filename" if filename else "--dry-run=client"
        raise WrongUsage(f"--from: excludes {other}; leave one of them out")
    if flags.dry_run is DryRun.CLIENT:
        _show_manifests(asked.manifests(interrupt.run(default_namespace(target))), form)
        return
    wait_s = flags.wait_s()
    run(target, lambda session: _create(session, asked, flags, wait_s, form))


def _show_manifests(manifests: Sequence[Mapping[str, Any]], form: Output) -> None:
    """Print the manifests of a dry run, without a call."""
    if form is Output.NAME:
        output.names([each["metadata"]["name"] for each in manifests])
    elif output.is_for_programs(form):
        output.objects(manifests, form)
    else:
        for each in manifests:
            typer.echo(f"{each['metadata']['name']} created (dry run)")


async def _create(
    session: Session, asked: CreateRequests, flags: CreateFlags, wait_s: float | None, form: Output
) -> None:
    if flags.from_:
        wanted = await copied(session, flags.from_, asked)
    else:
        wanted = asked.reservations(session.namespace)
    if flags.request_id and len(wanted) > 1 and not flags.set_:
        raise WrongUsage("--request-id: names one request, and these are several; give --set, too")
    if flags.dry_run is DryRun.SERVER:
        await creating.check_fit(session.client, wanted, form)
    elif flags.set_:
        await creating.create_set(session.client, wanted, form, flags.request_id)
    else:
        await creating.create_each(
            session.client,
            wanted,
            form,
            flags.request_id,
            no_wait=flags.no_wait,
            force=flags.force,
            wait_s=wait_s,
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
    spec = read_flags(document, asked.name, namespace)
    return [NewReservation(asked.name, namespace_of(spec, asked.namespace), spec)]
