"""`reserver validate`: says what is wrong with files, without a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from reserver.cli import failure
from reserver.cli.failure import Failed, Status
from reserver.cli.options import Report, ReportOption
from reserver.cli.selecting import FILES


def validate(
    filename: Annotated[list[str], FILES],
    reserver_namespace: Annotated[
        str,
        typer.Option(
            envvar="RESERVER_NAMESPACE",
            metavar="NAME",
            help="Reserver's own: of its store ConfigMaps, and of owners of any namespace.",
        ),
    ] = "reserver-system",
    configmap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="A ConfigMap that `reserver serve` is told to read, too. May be given more than "
            "once.",
        ),
    ] = None,
    output: ReportOption = Report.TABLE,
) -> None:
    """Read files as reserver would, and name each field that is wrong; no cluster is asked.

    Files hold store ConfigMaps in any of their three forms, Reservation objects, documents with
    `name` and `spec`, or specs alone. What only a cluster can know is not looked at: whether there
    is such a node, and room on it.

    Exit status: 0 all of it is valid; 1 some is not, and why is said; 2 wrong usage.

    Examples:
        reserver validate -f reservations/
        kubectl kustomize . | reserver validate -f -
    """
    from reserver.cli import documents, validity

    try:
        readers = validity.Readers(reserver_namespace, frozenset(configmap or ()))
        found = validity.judge(documents.read_files(filename), readers)
    except Failed as exc:
        failure.end(exc)
    validity.show(found, output)
    if found.problems:
        raise typer.Exit(Status.REFUSED)
