"""`reserver rebalance`: policies of the descheduler, and what comes of them."""

from __future__ import annotations

from typing import Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Report, ReportOption

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _rebalance() -> None:
    """Find pods that sit in the wrong place, by the policies of kubernetes-sigs/descheduler."""


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

    Example: `reserver rebalance validate policy.yaml && kubectl apply -k .`

    Exit status: 0 all are valid; 1 some is not, and why is said; 2 wrong usage.
    """
    from reserver.cli import policies

    try:
        judged = policies.judge(files)
    except Failed as exc:
        failure.end(exc)
    policies.show(judged, output)
    if not all(each.is_valid for each in judged):
        raise typer.Exit(Status.REFUSED)
