"""Usage errors of commands: one line each, with the command that shows the help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from reserver.cli import failure, words
from reserver.cli.failure import ExitStatus

_KINDS = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "FILE"}


def kind(parameter: Any) -> str:  # noqa: ANN401 - Typer's own
    """Return the placeholder of a parameter's value; empty for a flag."""
    descriptor = parameter.type_descriptor
    if getattr(parameter, "is_flag", False):
        return ""
    if parameter.metavar:
        return str(parameter.metavar)
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    if descriptor.choices is not None:
        return "|".join(str(each.value) for each in descriptor.choices)
    types = [type_ for type_ in _KINDS if type_.__name__ in str(descriptor.annotation)]
    return _KINDS[types[0]] if types else "VALUE"


@contextmanager
def usage() -> Iterator[None]:
    """Report wrong usage in one line, with the command that shows the help."""
    try:
        yield
    except typer.TyperException as exc:
        failure.report(_problem(exc))
        raise typer.Exit(ExitStatus.USAGE) from exc


def _problem(error: Any) -> str:  # noqa: ANN401 - Typer's own
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    remedy = f"; see {context.command_path} --help" if context is not None else ""
    if parameter is None:
        if hint := words.option_hint(error, context):
            return hint
        return f"{error.format_message().rstrip('.')}{remedy}".replace("?; see", "? See")
    arguments = parameter.param_type_name == "argument"
    name = kind(parameter) if arguments else max(parameter.opts, key=len)
    if not error.message:
        return f"{name}: is missing{remedy}"
    causes: list[Any] = getattr(error.__cause__, "errors", list)()
    value = repr(causes[0]["input"]) if causes else "this"
    choices = parameter.type_descriptor.choices
    if choices is not None:
        known = ", ".join(str(each.value) for each in choices)
        return f"{name}: {value} is not supported; write one of {known}"
    if kind(parameter) == "NUMBER":
        what = "a number" if parameter.type_descriptor.annotation is float else "a whole number"
        least = parameter.min or 0
        within = f" of {least} or more" if parameter.min is not None else ""
        if parameter.max is not None:
            within = f" from {least} to {parameter.max}"
        return f"{name}: {value} is out of range or not a number; write {what}{within}"
    return f"{name}: {error.message.removeprefix('Value error, ').rstrip('.')}"
