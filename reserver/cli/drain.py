"""`reserver drain`: all pods of a node move, and each has its seat before the first is evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.failure import Failed, Status
from reserver.cli.move import GraceOption, TimeoutOption, WaitOption, terms_of
from reserver.cli.options import Output, OutputOption, taking
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.podmoves import Client


@taking
def drain(
    target: Target,
    node: Annotated[
        str,
        typer.Argument(metavar="NODE", help="Node to drain.", autocompletion=completion.nodes),
    ],
    ignore_daemonsets: Annotated[
        bool, typer.Option("--ignore-daemonsets", help="Leave pods of DaemonSets on the node.")
    ] = False,
    delete_emptydir_data: Annotated[
        bool,
        typer.Option(
            "--delete-emptydir-data",
            help="Also move pods with emptyDir volumes; their data is lost.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also evict pods that no controller will replace.")
    ] = False,
    timeout: TimeoutOption = "",
    grace_period: GraceOption = -1,
    wait: WaitOption = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be moved, and change nothing.")
    ] = False,
    output_: OutputOption = Output.TABLE,
) -> None:
    """Cordon a node and move its pods; evict none before all have a seat elsewhere.

    If one pod gets no seat in time, the command names it and evicts none. It moves the same pods
    as `kubectl drain`, and respects PodDisruptionBudgets.

    Exit status: 0 the node is drained, or with --no-wait the moves are written; 1 some pods are not
    moved, and it says which and why; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver drain worker-3 --ignore-daemonsets
        reserver drain worker-3 --ignore-daemonsets --timeout 30m --no-wait
    """
    from reserver.cli import draining, podmoves
    from reserver.moves.drain import DrainOptions

    if dry_run and output_ is not Output.TABLE:
        failure.end(Failed(Status.USAGE, "--output: --dry-run writes no PodMoves; leave one out"))
    allowed = DrainOptions(
        ignores_daemon_sets=ignore_daemonsets,
        deletes_empty_dirs=delete_emptydir_data,
        evicts_unmanaged=force,
    )
    terms = terms_of(timeout, grace_period)

    async def make(client: Client, _: str) -> None:
        await draining.drained(client, node, allowed, terms, output_, wait=wait, dry_run=dry_run)

    podmoves.run(target, make)
