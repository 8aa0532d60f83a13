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
            help="Reserver's own namespace, whose reservations may have owners anywhere.",
        ),
    ] = "reserver-system",
    configmap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="A ConfigMap that `reserver serve --configmap` reads. May be given more than "
            "once.",
        ),
    ] = None,
    output: ReportOption = Report.TABLE,
) -> None:
    """Check files for errors, without a cluster.

    Files hold store ConfigMaps in any of their three forms, Reservation objects, documents with
    `name` and `spec`, or specs alone. It names each wrong field, its value and the remedy. It does
    not check what only the cluster knows: whether a node exists and has room.

    Exit status: 0 all are valid; 1 some are not, and it says why; 2 wrong usage.

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
