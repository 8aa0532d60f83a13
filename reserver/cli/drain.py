"""`reserver drain`: all pods of a node move, and each has its seat before the first is evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli.move import GraceOption, TimeoutOption, WaitOption, terms_of
from reserver.cli.options import Output, OutputOption, taking
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.podmoves import Client


@taking
def drain(
    target: Target,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Which node.")],
    ignore_daemonsets: Annotated[
        bool, typer.Option("--ignore-daemonsets", help="Leave pods of DaemonSets.")
    ] = False,
    delete_emptydir_data: Annotated[
        bool, typer.Option("--delete-emptydir-data", help="Move pods with emptyDir volumes, too.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Evict pods for good that no controller makes again.")
    ] = False,
    timeout: TimeoutOption = "",
    grace_period: GraceOption = -1,
    wait: WaitOption = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be moved; change nothing.")
    ] = False,
    output_: OutputOption = Output.TABLE,
) -> None:
    """Cordon a node and move its pods: none is evicted before all of them hold a seat elsewhere.

    If one of them gets no seat in time, none is evicted, and it is named. What may be moved is
    judged as `kubectl drain` does; PodDisruptionBudgets are kept.

    Exit status: 0 the node is drained, or with --no-wait the moves are written; 1 some pods are not
    moved, and which and why is said; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver drain worker-3 --ignore-daemonsets
        reserver drain worker-3 --ignore-daemonsets --timeout 30m --no-wait
    """
    from reserver.cli import draining, podmoves
    from reserver.wire.migration.draining import Allowed

    allowed = Allowed(
        ignores_daemon_sets=ignore_daemonsets,
        deletes_empty_dirs=delete_emptydir_data,
        evicts_unmanaged=force,
    )
    terms = terms_of(timeout, grace_period)

    async def make(client: Client, _: str) -> None:
        await draining.drained(client, node, allowed, terms, output_, wait=wait, dry_run=dry_run)

    podmoves.run(target, make)
