"""Writes docs/cli-reference.md from the help of the commands.

A unit test compares the committed page with the commands.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from typer.main import get_command

from reserver.cli.help import Help, default, names, runs, tree
from reserver.cli.main import app
from reserver.cli.target import Target
from reserver.settings.flags import declared

PAGE = Path(__file__).parents[1] / "docs/cli-reference.md"

_HEAD = """\
# The commands and their options

Written by `make cli-reference` from what `--help` says. [The command line](cli.md) shows them at
work.
A variable separates several values by spaces.
"""
_CONNECTION = {each.field for each in declared(Target)}
_GENERAL = {"help"}


def page() -> str:
    """Return the whole page."""
    root: Any = get_command(app)
    commands = {" ".join(("reserver", *words)): each for words, each in tree(root) if runs(each)}
    first = next(each for each in commands.values() if _asks(each))
    shared = [each for each in first.params if each.name in _CONNECTION]
    parts = [_HEAD, "## Options for the connection\n", _table(shared)]
    for name, command in commands.items():
        text, examples = Help.of(command)
        parts += [f"## {name}\n", f"{_text(text)}\n"]
        if examples:
            parts.append(f"```\n{examples}\n```\n")
        told = _GENERAL | _CONNECTION if _asks(command) else _GENERAL
        own = [each for each in command.params if each.name not in told]
        for panel in dict.fromkeys(each.rich_help_panel for each in own):
            if panel:
                parts.append(f"{panel}:\n")
            parts.append(_table([each for each in own if each.rich_help_panel == panel]))
    return "\n".join(parts)


def _asks(command: Any) -> bool:  # noqa: ANN401 - Typer's own
    return {each.name for each in command.params} >= _CONNECTION


def _table(parameters: list[Any]) -> str:
    rows = [("option", "environment", "default", "meaning")]
    for each in parameters:
        environment = f"`{each.envvar}`" if each.envvar else ""
        value = "required" if each.required else f"`{default(each)}`".replace("``", "")
        rows.append((f"`{_text(names(each))}`", environment, value, _text(each.help)))
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    head, *others = ("| " + " | ".join(row) + " |" for row in zip(*columns, strict=True))
    return "\n".join((head, "|---" * len(columns) + "|", *others)) + "\n"


def _text(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
