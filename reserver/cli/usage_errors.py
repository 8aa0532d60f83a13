"""The end of a command for an error: one line, with the word that is meant or the help to read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from reserver.cli import failure
from reserver.cli.failure import ExitStatus
from reserver.errors import ReserverError

_PROBLEMS = {
    "No such (command|option):?": r"there is no \1",
    r"Option '(\S+)' requires an argument": r"\1: needs a value",
    r"Got unexpected extra argument\(s\) \((.*)\)": r"too many arguments: \1; an optional value "
    "comes after =, as in --wait=1h",
}
"""Problems as Typer says them, and as Reserver does."""

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
def reported() -> Iterator[None]:
    """Report what ends a command, and exit; wrong usage with the command that shows the help."""
    try:
        yield
    except ReserverError as exc:
        failure.end(exc)
    except typer.TyperException as exc:
        failure.report(_problem(exc))
        raise typer.Exit(ExitStatus.USAGE) from exc


def _problem(error: Any) -> str:  # noqa: ANN401 - Typer's own
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    remedy = f"; see {context.command_path} --help" if context is not None else ""
    if parameter is None:
        if hint := option_hint(error, context):
            return hint
        said = error.format_message().rstrip(".")
        for theirs, ours in _PROBLEMS.items():
            said = re.sub(theirs, ours, said)
        return f"{said}{remedy}".replace("?; see", "? See")
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


_NEAR = 0.7

_RENAMED = {
    "whatif": ("whatif", "create --dry-run=server"),
    "top reservations": ("top reservations", "get -o wide"),
    "pause": ("pause", "moves pause"),
    "resume": ("resume", "moves resume"),
    "debug": ("debug dump", "dump"),
}
"""Commands that went, by their words: the name in full, and the command that does the same."""

_MEANT = {
    "add": "create",
    "cancel": "release",
    "del": "release",
    "delete": "release",
    "list": "get",
    "ls": "get",
    "new": "create",
    "remove": "release",
    "rm": "release",
    "show": "describe",
    "undo": "restore",
}
"""Commands of other programs, and the one that does the same."""


_MEANT_OPTIONS = {
    "--by": "--ttl",
    "--count": "--slots",
    "--duration": "--ttl",
    "--end": "--expires-at",
    "--file": "--filename",
    "--for": "--ttl",
    "--gpu": "--resource nvidia.com/gpu=1",
    "--label": "--selector",
    "--labels": "--selector",
    "--mem": "--memory",
    "--replicas": "--slots",
    "--start": "--starts-at",
    "--until": "--expires-at",
    "--wait-for": "--for",
}
"""Options that people try, and the one that does it, for commands that have the latter."""


def option_hint(error: Any, context: Any) -> str:  # noqa: ANN401 - Typer's own
    """Return the problem with an option, and the one that is meant; empty if none is known."""
    name = getattr(error, "option_name", "")
    if "does not take a value" in error.format_message():  # Without a context.
        return f"{name}: takes no value here; write {name} alone"
    if context is None:
        return ""
    options = [flag for each in context.command.params for flag in each.opts if flag[:2] == "--"]
    if name in options or not name.startswith("--"):
        return ""
    meant = _MEANT_OPTIONS.get(name, "")
    if meant.split(" ")[0] not in options:
        meant = next(iter(get_close_matches(name, options, 1, _NEAR)), "")
    return (
        f"there is no option {name}; did you mean {meant}? See {context.command_path} --help"
        if meant
        else ""
    )


def hint(group: str, word: str) -> str:
    """Return the hint for a word that is no command of a group; empty if none is known."""
    if renamed := _RENAMED.get(f"{group} {word}".strip()):
        before, now = renamed
        return f"`reserver {before}` is now `reserver {now}`"
    meant = "" if group else _MEANT.get(word, "")
    if group == "explain" and not word.startswith("-"):
        meant = f"`reserver explain pod {shlex.quote(word)}`"
    return (
        f"there is no command {word!r}; did you mean {meant}? See reserver --help" if meant else ""
    )
