"""The output formats, the options that choose one, and results for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from reserver.cli.failure import WrongUsage
from reserver.cli.jsonpath import TEMPLATE
from reserver.errors import InvalidInput
from reserver.printable import is_printable, printable

if TYPE_CHECKING:
    from reserver.client import ReservationInfo


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
    """The text of a template for the JSON (`jsonpath.JsonPath`)."""


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
        raise WrongUsage("--output: csv is for get, history, report and top; use json or jsonpath")
    return form


def _output(choices: str, **settings: Any) -> Any:  # noqa: ANN401 - Typer's own
    return typer.Option(
        "--output", "-o", metavar="FORMAT", help=f"{choices}.", case_sensitive=False, **settings
    )


OutputOption = Annotated[
    Output, _output("table, wide, json, yaml, name, jsonpath=PATH", callback=_no_csv)
]
ListOutputOption = Annotated[Output, _output("table, wide, json, yaml, name, csv, jsonpath=PATH")]
ReportOption = Annotated[Report, _output("table, json, yaml, jsonpath=PATH", callback=_no_csv)]
TableOutputOption = Annotated[Report, _output("table, json, yaml, csv, jsonpath=PATH")]


_LAYOUT = "\n"


def is_for_programs(output: Output) -> bool:
    """Return whether a program reads it, not a person."""
    return output not in {Output.TABLE, Output.WIDE}


def reservations(found: Sequence[ReservationInfo], output: Output, *, alone: bool = False) -> None:
    """Print reservations for a program.

    Args:
        found: the reservations.
        output: in which form.
        alone: it is one that was asked for by its name: not in a list.
    """
    from reserver.cli import serialization

    if output is Output.NAME:
        names([each.id for each in found])
        return
    shown = [serialization.show(each) for each in found]
    document(shown[0] if alone and len(shown) == 1 else {"reservations": shown}, output)


def document(value: Any, output: Output | Report) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Print a value as JSON, as YAML, or by the template."""
    if output.value == Report.JSONPATH.value:
        template = TEMPLATE.get()
        if template is None:
            problem = "--output: jsonpath has no template; write jsonpath={.reservations[*].id}"
            raise WrongUsage(problem)
        try:
            text = template.render(value)
        except InvalidInput as exc:
            raise WrongUsage(str(exc)) from exc
        typer.echo(printable(text, _LAYOUT + "\t"), nl=not text.endswith("\n"))
    elif output.value == Report.YAML.value:
        import yaml

        dumper = yaml.CSafeDumper  # libyaml takes a fifth of the time.
        text = str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True))
        if not is_printable(text, _LAYOUT):
            text = str(yaml.dump(value, Dumper=dumper, sort_keys=False))
        typer.echo(text, nl=False)
    else:
        typer.echo(_json(value, indent=2))


def objects(manifests: Sequence[Mapping[str, Any]], output: Output) -> None:
    """Print objects of Kubernetes: as documents of YAML, or in JSON, several as a List."""
    if output is Output.YAML:
        for number, each in enumerate(manifests):
            if number:
                typer.echo("---")
            document(each, output)
    elif len(manifests) == 1:
        document(manifests[0], output)
    else:
        document({"apiVersion": "v1", "kind": "List", "items": manifests}, output)


def in_camel_case(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return a value with field names in camel case, as in Kubernetes.

    Names that are values stay: names of resources have no underscore.
    """
    if isinstance(value, dict):
        return {_camel(name): in_camel_case(each) for name, each in value.items()}
    return [in_camel_case(each) for each in value] if isinstance(value, list | tuple) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others)) if name.isidentifier() else name


def item(value: Any, output: Output) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Print a value of a stream, at once: a line of JSON, or a document of YAML."""
    if output is Output.YAML:
        typer.echo("---")
    if output is Output.JSON:
        typer.echo(_json(value))
    else:
        document(value, output)


def _json(value: Any, indent: int | None = None) -> str:  # noqa: ANN401 - as above
    """Return a value as JSON; escape all non-ASCII if some of it would be invisible."""
    try:
        # Not json.dumps: with an indent it is pure Python, a seventh of a plan's time.
        text = msgspec.json.format(msgspec.json.encode(value), indent=indent or 0).decode()
    except UnicodeEncodeError:  # A file's name may have bytes that are no text.
        return json.dumps(value, indent=indent)
    return text if is_printable(text, _LAYOUT) else json.dumps(value, indent=indent)


def csv(columns: Sequence[str], rows: Iterable[Sequence[str]], *, is_titled: bool = True) -> None:
    """Print rows as comma-separated values (RFC 4180), below the titles of the columns."""
    import csv as format_

    lines = io.StringIO()
    writer = format_.writer(lines, lineterminator="\n")
    writer.writerows([columns, *rows] if is_titled else rows)
    typer.echo(lines.getvalue(), nl=False)


def names(each: Sequence[str]) -> None:
    """Print names, one a line."""
    if each:
        typer.echo("\n".join(map(printable, each)))
