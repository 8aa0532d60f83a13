"""`reserver explain`: why a pod has no node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from reserver.cli import completion, connection, failure, output, similar, table
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failed, Refused
from reserver.cli.formatting import duration
from reserver.cli.help import App
from reserver.cli.options import NamespaceOption, pod_of
from reserver.cli.output import Report, ReportOption
from reserver.cli.table import Row
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import CallFailed
from reserver.cluster.pod import PodName
from reserver.errors import ReserverError
from reserver.printable import printable

app = App()

_MOST_LINES = 20
_PATIENCE_S = 3.0
"""So long is a kubeconfig's API server asked which pod is meant."""

_DEVICES = (
    "It has ResourceClaims: kube-scheduler finds their devices. Reservations hold none, and nodes "
    "without them are listed as usable here."
)


@app.callback()
def _explain() -> None:
    """Explain why a pod has no node.

    Examples:
        reserver explain pod shop/web-0
    """


@app.command()
def pod(
    target: Target,
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAMESPACE/]NAME", help="Pod to explain.", autocompletion=completion.pods
        ),
    ],
    namespace: NamespaceOption = "",
    form: ReportOption = Report.TABLE,
) -> None:
    """Explain which nodes a pod can use, and why not the others.

    Exit status: 0 explained; 1 the pod does not exist, or refused; 2 wrong usage; 3 Reserver cannot
    be reached.

    Examples:
        reserver explain pod shop/web-0
        reserver explain pod web-0 -n shop -o json
    """
    own, pod_name = pod_of(name, "NAME")

    async def work(session: Session) -> None:
        where = own or namespace or session.namespace
        async with progress(f"Asking about pod {where}/{pod_name}"):
            try:
                explanation = await session.client.capacity.explain(where, pod_name)
            except CallFailed as exc:
                if exc.code != "NOT_FOUND":
                    raise
                raise await _no_pod(target, PodName(where, pod_name), exc) from exc
        if form is Report.TABLE:
            _show_explanation(explanation)
        else:
            output.document(output.in_camel_case(explanation), form)

    run(target, work)


async def _no_pod(target: Target, pod: PodName, error: CallFailed) -> Failed:
    """Return the error for an unknown pod, with a similar name if a kubeconfig is at hand."""
    import kubernetes.aio.config  # noqa: F401 - before the time runs

    problem = failure.of(error).message
    with suppress(ReserverError, OSError, TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            question = await connection.calling(target, lambda client, _: similar.like(client, pod))
            problem += f"; {question}" if question else ""
    return Refused(problem)


def _show_explanation(explanation: dict[str, Any]) -> None:
    """Print an explanation as `Explain` and `GET /explain/NAMESPACE/POD` give it."""
    pod, summary = printable(explanation["pod"]), printable(explanation["summary"])
    typer.echo(f"{typer.style(pod, bold=True)}: {summary}")
    if explanation["exempt"]:
        typer.echo("No reservation keeps out a pod of its priority.")
    if explanation.get("has_resource_claims"):  # An older server does not say it.
        typer.echo(_DEVICES)
    if explanation["reasons"]:
        typer.echo()
        rows = [_reason(reason) for reason in explanation["reasons"]]
        table.show(("NODES", "REASON", "SUCH AS"), rows, right=("NODES",))
    if explanation["in_the_way"]:
        more = explanation["more_in_the_way"]
        _show_holds("IN ITS WAY", explanation["in_the_way"], more)
        _show_mistaken(pod, explanation["in_the_way"])
    if explanation["owns"]:
        _show_holds("HELD FOR IT", explanation["owns"], 0)
    if pending := explanation.get("pending"):  # Nor this.
        _show(
            "NOT HELD FOR IT YET", ("BECAUSE",), [(p["reservation"], p["message"]) for p in pending]
        )


def _reason(reason: dict[str, Any]) -> Row:
    examples = ", ".join(reason["examples"])
    more = ", …" if reason["nodes"] > len(reason["examples"]) else ""
    return str(reason["nodes"]), reason["reason"], examples + more


def _show_holds(title: str, holds: list[dict[str, Any]], more: int) -> None:
    rows = [(hold["reservation"], hold["node"], duration(hold["seconds_left"])) for hold in holds]
    _show(title, ("NODE", "ENDS IN"), rows, more)


def _show_mistaken(pod: str, holds: list[dict[str, Any]]) -> None:
    """Say of which holds the pod would be an owner if it were of their owners' namespace."""
    for hold in holds[:_MOST_LINES]:
        if other := printable(hold.get("for_namespace", "")):  # An older server does not say it.
            typer.echo(
                f"\n{printable(hold['reservation'])}: only such pods of {other} may claim it."
            )
            typer.echo(f"If {pod} should, write its namespace into the owners.")


def _show(title: str, others: Sequence[str], rows: Sequence[Row], more: int = 0) -> None:
    """Print the first rows, and how many more there are."""
    shown = list(rows[:_MOST_LINES])
    more += len(rows) - len(shown)
    if more:
        shown.append((f"… and {more} more", *("" for _ in others)))
    typer.echo()
    table.show((title, *others), shown)
