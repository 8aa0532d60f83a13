"""`reserver rebalance`: policies of the descheduler, and what comes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.failure import Failed, Status
from reserver.cli.help import App
from reserver.cli.options import Goal, Report, ReportOption, taking
from reserver.cli.rebalance_run import run
from reserver.cli.target import Target
from reserver.errors import ReserverError
from reserver.rebalance.ways import Compat

app = App()


@app.callback()
def _rebalance() -> None:
    """Find pods that sit on the wrong node, by the policies of kubernetes-sigs/descheduler."""


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

    Accepts and refuses what descheduler v0.36 accepts and refuses; no cluster is asked. Warns of
    what it ignores in silence, such as an unknown or mis-cased field outside of `args`.

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
    policy_config_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Policy, descheduler/v1alpha2; - for standard input.",
            autocompletion=completion.files,
        ),
    ] = "",
    make_room: Annotated[
        bool, typer.Option("--make-room", help="Instead: room for the pending pods.")
    ] = False,
    pods: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="With --make-room: for these pods, not for pending ones; - for standard input.",
            autocompletion=completion.files,
        ),
    ] = "",
    together: Annotated[
        bool, typer.Option("--together", help="With --make-room: for all of them, or for none.")
    ] = False,
    defragment: Annotated[
        bool, typer.Option("--defragment", help="Instead: as many empty nodes as possible.")
    ] = False,
    filename: Annotated[
        str,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="A dump instead of the live cluster; - for standard input.",
            autocompletion=completion.files,
        ),
    ] = "",
    compat: Annotated[
        Compat, typer.Option(help="Judge a policy as one plan, or as upstream's code does.")
    ] = Compat.SOUND,
    without_holds: Annotated[
        bool, typer.Option("--without-holds", help="What reservations hold does not count.")
    ] = False,
    solver_seconds: Annotated[
        float, typer.Option(min=0, max=3600, help="With --make-room or --defragment: prove it.")
    ] = 0.0,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it as well: FILE.svg or FILE.html.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="0: no moves; 1: an error; 2: moves.")
    ] = False,
    output: ReportOption = Report.TABLE,
) -> None:
    """Show which pods would move where, and change nothing.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 the cluster or reserver cannot be reached.
    With --detailed-exitcode: 0 nothing to do, 1 any error, 2 there are moves.

    Examples:
        reserver rebalance plan --policy-config-file policy.yaml
        kubectl get nodes,pods,namespaces,pdb,pvc,pv,sc,priorityclasses -A -o json |
          reserver rebalance plan --defragment -f -
    """
    import asyncio

    from reserver.cli import picture as pictures
    from reserver.cli import plan_view, planning

    try:
        goal = _goal(policy_config_file, make_room, defragment)
        if (pods or together) and goal is not Goal.MAKE_ROOM:
            raise Failed(Status.USAGE, "--pods, --together: go with --make-room; give it, too")
        pictures.check(picture)
        request = planning.Request(
            goal=goal,
            policy_file=policy_config_file,
            dump=filename,
            compat=compat,
            without_holds=without_holds,
            solver_s=solver_seconds,
            pods_file=pods,
            together=together,
        )
        found = asyncio.run(planning.planned(request, target))
        plan_view.show(found, output)
        if picture is not None:
            plan_view.draw(found, picture)
    except KeyboardInterrupt:
        failure.interrupt()
    except ReserverError as exc:
        failed = failure.of(exc)
        status = Status.REFUSED if detailed_exitcode else failed.status
        failure.end(Failed(status, failed.message))
    if detailed_exitcode and found.moves:
        raise typer.Exit(_HAS_MOVES)


_HAS_MOVES = 2


def _goal(policy: str, make_room: bool, defragment: bool) -> Goal:
    """Return what a plan is to reach.

    Raises:
        Failed: nothing, or more than one thing.
    """
    if make_room and defragment:
        raise Failed(Status.USAGE, "--defragment: does not go with --make-room; leave one out")
    if make_room or defragment:
        return Goal.MAKE_ROOM if make_room else Goal.DEFRAGMENT
    if not policy:
        remedy = "give a policy's file, --make-room or --defragment"
        raise Failed(Status.USAGE, f"--policy-config-file: is missing; {remedy}")
    return Goal.POLICY


app.command()(run)
