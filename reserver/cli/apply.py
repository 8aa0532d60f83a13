"""`reserver apply`, `update` and `edit`: the commands that change reservations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.connect import run
from reserver.cli.failure import Failed, Status
from reserver.cli.options import NamespaceOption, Output, OutputOption, taking
from reserver.cli.selecting import FILES, Chosen
from reserver.cli.spec_flags import SpecFlags
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connect import Session


@taking
def apply(
    target: Target,
    filename: Annotated[list[str], FILES],
    namespace: NamespaceOption = "",
    force: Annotated[
        bool, typer.Option("--force", help="Create it even if it can never fit.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create or change reservations so that they match files.

    Run it as often as you like: a reservation that matches its file stays unchanged and keeps its
    claims. A `ttl` counts from the creation, so applying a file again neither prolongs a
    reservation nor undoes `reserver extend`; an `expiresAt` is restored. Labels of the file are
    set; other labels stay. It reads the same files as `reserver create -f`.

    Exit status: 0 all match the files; 1 some were refused; 2 wrong usage; 3 Reserver cannot
    be reached; 4 no room, on nodes or in the quota.

    Examples:
        reserver apply -f reservations/
        reserver get web-1 -o yaml | sed 's/slots: 1/slots: 2/' | reserver apply -f -
    """
    from reserver.cli.asking import Asked

    asked = Asked.of("", filename, SpecFlags(), namespace)

    async def work(session: Session) -> None:
        from reserver.cli import applying

        asked.specs(session.namespace)  # A file that is broken changes nothing.
        own = namespace or session.namespace
        doing = applying.Applying(session.client, own, force=force, dry_run=dry_run)
        note = "(dry run)" if dry_run else ""
        await applying.apply_each(doing, asked.wanted, output, note)

    run(target, work)


@taking
def update(
    spec: SpecFlags,
    target: Target,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name or id of the reservation.",
            autocompletion=completion.reservations,
        ),
    ],
    namespace: NamespaceOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Change fields of a reservation; all other fields stay.

    The defaults below are those of `create`: a flag that is not given changes nothing. A larger
    hold, or one on another node, has to fit. If what is held changes, it is a new reservation and
    loses its claims. To change it from a file, use `reserver apply`.

    Exit status: 0 changed; 1 refused, or not there; 2 wrong usage; 3 Reserver cannot be reached;
    4 no room, on nodes or in the quota.

    Examples:
        reserver update web-1 --cpu 2 --slots 3
        reserver update web-1 --node worker-2
        reserver update web-1 --owner app=web --owner job/batch -n shop
    """
    if not spec.are_given:
        failure.end(Failed(Status.USAGE, "no change is given; give a flag such as --cpu or --node"))

    async def work(session: Session) -> None:
        from reserver.cli import applying

        own = namespace or session.namespace
        among = Chosen(namespace=namespace).selection(own)
        changed = await applying.update_by_flags(session.client, name, among, spec, own)
        applying.show(name, "updated", changed, output)

    run(target, work)


@taking
def edit(
    target: Target,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name or id of the reservation.",
            autocompletion=completion.reservations,
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Edit a reservation in your editor (KUBE_EDITOR, EDITOR, or vi).

    If the reservation is invalid, the editor opens again and shows the errors at the top. Save it
    unchanged to cancel. If somebody else changed the reservation meanwhile, your file is kept.

    Exit status: 0 changed, or nothing to change; 1 refused, or not there; 2 wrong usage; 3 Reserver
    cannot be reached; 4 no room, on nodes or in the quota.

    Examples:
        reserver edit web-1
        EDITOR="code --wait" reserver edit web-1
    """
    # gRPC would warn of the editor, which is another process.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

    async def work(session: Session) -> None:
        from reserver.cli import editing

        await editing.edit(session.client, name, session.namespace, output)

    run(target, work)
