"""The output formats, and the options that choose one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from reserver.cli import failure


class Output(StrEnum):
    """The output formats of reservations."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    CSV = "csv"
    """The wide table, for spreadsheets."""

    JSONPATH = "jsonpath"
    """What a template makes of the JSON (`jsonpath.JsonPath`)."""


class Report(StrEnum):
    """The output formats of answers that are not lists of reservations."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    JSONPATH = "jsonpath"


def _no_csv(form: Any) -> Any:  # noqa: ANN401 - of either type
    """Refuse CSV before anything is done."""
    if form in {Output.CSV, Report.CSV}:
        problem = "--output: csv is for get, history, report and top; use json or jsonpath"
        failure.end(failure.Failed(failure.ExitStatus.USAGE, problem))
    return form


def _output(choices: str, **settings: Any) -> Any:  # noqa: ANN401 - Typer's own
    text = "Output format. jsonpath as in kubectl, of what json prints."
    return typer.Option(
        "--output", "-o", metavar=choices, help=text, case_sensitive=False, **settings
    )


OutputOption = Annotated[
    Output, _output("table|wide|json|yaml|name|jsonpath=PATH", callback=_no_csv)
]
ListOutputOption = Annotated[Output, _output("table|wide|json|yaml|name|csv|jsonpath=PATH")]
ReportOption = Annotated[Report, _output("table|json|yaml|jsonpath=PATH", callback=_no_csv)]
TableOutputOption = Annotated[Report, _output("table|json|yaml|csv|jsonpath=PATH")]
