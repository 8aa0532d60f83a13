"""`reserver create` and `reserver whatif`: create reservations, or ask whether they would fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from reserver.cli import failure
from reserver.cli.connect import run
from reserver.cli.failure import Failed, Status
from reserver.cli.options import DryRun, NamespaceOption, Output, OutputOption, taking
from reserver.cli.selecting import FILES
from reserver.cli.spec_flags import SpecFlags
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.asking import Asked
    from reserver.cli.connect import Session


@taking
def create(
    spec: SpecFlags,
    target: Target,
    name: Annotated[
        str, typer.Argument(help="Name of the reservation.", metavar="NAME", show_default=False)
    ] = "",
    filename: Annotated[list[str] | None, FILES] = None,
    namespace: NamespaceOption = "",
    whole_set: Annotated[
        bool, typer.Option("--set", help="Create all or none, and only if all fit now.")
    ] = False,
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait", help="Refuse a reservation that does not fit now, instead of keeping it."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Create it even if it can never fit.")
    ] = False,
    request_id: Annotated[
        str,
        typer.Option(metavar="ID", help="Key that makes it safe to run the same command again."),
    ] = "",
    dry_run: Annotated[
        DryRun,
        typer.Option(
            "--dry-run",
            help="Create nothing. client: print what would be created, with -o yaml as a manifest; "
            "server: say whether it would fit. Alone: client.",
            case_sensitive=False,
        ),
    ] = DryRun.NONE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create reservations, and return once their holds are in force.

    Describe the reservation by flags or in files. Files hold Reservation objects (docs/crd.md),
    documents with `name` and `spec` as `reserver get -o yaml` prints them, or specs alone
    (docs/reservations.md).

    Exit status: 0 created; 1 refused; 2 wrong usage; 3 Reserver cannot be reached; 4 no room, on
    nodes or in the quota.

    Examples:
        reserver create web-1 --node worker-3 --owner pod/web-0 --cpu 2 --ttl 1h
        reserver create train --owner app=x --resource nvidia.com/gpu=1 --slots 2
        reserver create web-1 --owner pod/web-0 --cpu 2 --dry-run -o yaml
        reserver create -f pair.yaml --set
    """
    from reserver.cli.asking import Asked

    asked = Asked.of(name, filename or (), spec, namespace)
    if dry_run is DryRun.CLIENT:
        show_manifests(target, asked, output)
        return
    way = _Way(whole_set, no_wait, force, request_id, dry_run)
    run(target, lambda session: _create(session, asked, way, output))


def show_manifests(target: Target, asked: Asked, output: Output) -> None:
    """Print what would be created; reserver is not asked."""
    from reserver.cli import connect, interrupt
    from reserver.cli import output as outputs

    try:
        manifests = asked.manifests(interrupt.run(connect.default_namespace(target)))
    except Failed as exc:
        failure.end(exc)
    if output is Output.NAME:
        outputs.names([each["metadata"]["name"] for each in manifests])
    elif outputs.is_for_programs(output):
        outputs.objects(manifests, output)
    else:
        for each in manifests:
            typer.echo(f"{each['metadata']['name']} created (dry run)")


class _Way(NamedTuple):
    """How to create, as the options of these names say."""

    whole_set: bool
    no_wait: bool
    force: bool
    request_id: str
    dry_run: DryRun


async def _create(session: Session, asked: Asked, way: _Way, output: Output) -> None:
    from reserver.cli import asking

    specs = asked.specs(session.namespace)
    if way.request_id and len(specs) > 1 and not way.whole_set:
        problem = "names one request, and these are several"
        raise Failed(Status.USAGE, f"--request-id: {problem}; give --set, too")
    if way.dry_run is DryRun.SERVER:
        await asking.weigh(session.client, specs, output)
    elif way.whole_set:
        await asking.create_set(session.client, specs, asked.labels, output, way.request_id)
    else:
        await asking.create_each(
            session.client,
            specs,
            asked.labels,
            output,
            way.request_id,
            no_wait=way.no_wait,
            force=way.force,
        )


@taking
def whatif(
    target: Target,
    filename: Annotated[list[str], FILES],
    namespace: NamespaceOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Check whether reservations would fit together, and change nothing.

    It reads the same files as `reserver create -f`, and says where each fits or what is missing.

    Exit status: 0 they fit; 1 refused; 2 wrong usage; 3 Reserver cannot be reached; 4 no room.

    Examples:
        reserver whatif -f pair.yaml
        reserver get -o yaml -n shop | reserver whatif -f -
    """
    from reserver.cli import asking

    asked = asking.Asked.of("", filename, SpecFlags(), namespace)

    async def ask(session: Session) -> None:
        await asking.weigh(session.client, asked.specs(session.namespace), output)

    run(target, ask)
