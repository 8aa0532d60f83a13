"""Writes docs/cli-reference.md from the help of the commands.

A unit test compares what is committed with what the commands say.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from reserver.cli.main import app
from reserver.cli.target import Target
from reserver.flags import declared

PAGE = Path(__file__).parents[1] / "docs/cli-reference.md"

_HEAD = """\
# The commands and their options

Written by `make cli-reference` from what `--help` says. [The command line](cli.md) shows them at
work.
"""
_CONNECTION = {each.field for each in declared(Target)}
_GENERAL = {"help", "install_completion", "show_completion"}


def page() -> str:
    """Return the whole page."""
    root: Any = get_command(app)
    commands = dict(_commands("reserver", root))
    first = next(each for each in commands.values() if _asks(each))
    shared = [each for each in first.params if each.name in _CONNECTION]
    parts = [_HEAD, "## Options of all commands that ask reserver\n", _table(first, shared)]
    for name, command in commands.items():
        parts += [f"## {name}\n", f"{_text(command.help)}\n"]
        told = _GENERAL | _CONNECTION if _asks(command) else _GENERAL
        own = [each for each in command.params if each.name not in told]
        if own:
            parts.append(_table(command, own))
    return "\n".join(parts)


def _asks(command: Any) -> bool:  # noqa: ANN401 - Typer's own
    return {each.name for each in command.params} >= _CONNECTION


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - Typer's own
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    if not subcommands:
        yield name, command
    for word, each in subcommands.items():
        yield from _commands(f"{name} {word}", each)


def _table(command: Any, parameters: list[Any]) -> str:  # noqa: ANN401 - Typer's own
    context = typer.Context(command)
    rows = ["| | environment | default | |", "|---|---|---|---|"]
    for each in parameters:
        names = ", ".join(f"`{option}`" for option in each.opts)
        if each.param_type_name == "argument":
            names = f"`{each.metavar or each.name.upper()}`"
        elif not each.is_flag:
            value = each.metavar or each.display_type(context).strip("<>")
            names += f" `{_text(value)}`"
        environment = f"`{each.envvar}`" if each.envvar else ""
        rows.append(f"| {names} | {environment} | {_default(each)} | {_text(each.help)} |")
    return "\n".join(rows) + "\n"


def _default(parameter: Any) -> str:  # noqa: ANN401 - Typer's own
    value = parameter.default
    if parameter.required:
        return "required"
    if value in (None, "", (), []) or value is False:
        return ""
    if isinstance(value, list):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{getattr(value, 'value', value)}`"


def _text(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
