"""`reserver rebalance`: validates, plans and carries out the descheduler's policies."""

from __future__ import annotations

from typing import Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.failure import Failed, Status
from reserver.cli.help import App
from reserver.cli.options import Report, ReportOption, taking
from reserver.cli.plan_flags import PlanFlags
from reserver.cli.rebalance_run import run
from reserver.cli.target import Target
from reserver.errors import ReserverError

app = App()


@app.callback()
def _rebalance() -> None:
    """Find pods that sit on the wrong node, by the policies of kubernetes-sigs/descheduler.

    Examples:
        reserver rebalance validate policy.yaml
        reserver rebalance plan --policy-config-file policy.yaml
        reserver rebalance run --policy-config-file policy.yaml --dry-run
    """


@app.command()
def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Policy files, or - for standard input.",
            autocompletion=completion.files,
        ),
    ],
    output: ReportOption = Report.TABLE,
) -> None:
    """Read policy files as the descheduler would, and name each field that is wrong or ignored.

    Accepts and refuses what descheduler v0.36 does, and refuses YAML that readers understand
    differently, such as `yes` and 010; no cluster is asked. Warns of what the descheduler ignores
    in silence, such as an unknown or mis-cased field outside of `args`.

    Exit status: 0 all are valid; 1 some is not, and why is said; 2 wrong usage.

    Examples:
        reserver rebalance validate policy.yaml && kubectl apply -k .
    """
    from reserver.cli import policies

    try:
        judged = policies.judge(files)
    except Failed as exc:
        failure.end(exc)
    policies.show(judged, output)
    if not all(each.is_valid for each in judged):
        raise typer.Exit(Status.REFUSED)


@app.command()
@taking
def plan(
    target: Target,
    flags: PlanFlags,
    filename: Annotated[
        str,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Plan for a dump instead of the live cluster; - for standard input.",
            autocompletion=completion.files,
        ),
    ] = "",
    output: ReportOption = Report.TABLE,
) -> None:
    """Show which pods would move where, and change nothing.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 the cluster or Reserver cannot be reached.
    With --detailed-exitcode: 0 nothing to do, 1 any error, 2 there are moves.

    Examples:
        reserver rebalance plan --policy-config-file policy.yaml
        reserver rebalance plan --make-room --pods reservation.yaml
        kubectl get nodes,pods,namespaces,pdb,pvc,pv,sc,priorityclasses -A -o json |
          reserver rebalance plan --defragment -f -
    """
    from reserver.cli import interrupt, plan_view, planning

    try:
        flags.check()
        found = interrupt.run(planning.planned(flags, filename, target))
        plan_view.show(found, output)
        if flags.picture is not None:
            plan_view.draw(found, flags.picture)
    except ReserverError as exc:
        failed = failure.of(exc)
        status = Status.REFUSED if flags.detailed_exitcode else failed.status
        failure.end(Failed(status, failed.message))
    if flags.detailed_exitcode and found.moves:
        raise typer.Exit(_HAS_MOVES)


_HAS_MOVES = 2

app.command()(run)
