"""Help as a terminal shows it, and what is said of options that are wrong."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from reserver.cli.help import Help
from reserver.cli.main import app


def commands(words: tuple[str, ...] = (), of: Any = None) -> Iterator[tuple[str, ...]]:
    command = of or get_command(app)
    yield words
    for name, each in getattr(command, "commands", {}).items():
        yield from commands((*words, name), each)


@pytest.mark.parametrize("columns", ["80", "160"])
@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_cuts_no_flag_and_fits_the_terminal(words: tuple[str, ...], columns: str) -> None:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": columns})
    assert result.exit_code == 0
    command: Any = get_command(app)
    for word in words:
        command = command.commands[word]
    for each in command.params:
        flags = [name for name in (*each.opts, *each.secondary_opts) if name.startswith("-")]
        assert all(flag in result.stdout for flag in flags)
    assert "…" not in result.stdout.replace("LIMIT,…", "")
    for kind in ("<str>", "<bool>", "list[", "<path>", "<int", "....."):
        assert kind not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("get --phase lost", "--phase: 'lost' is none of its values; write one of Pending, Activ"),
        ("create a --slots x", "--slots: 'x' is out of range or not a number; write a"),
        (
            "serve --http-port 99999",
            "--http-port: '99999' is out of range or not a number; write a",
        ),
        (
            "migrate --timeout 0",
            "--timeout: '0' is out of range or not a number; write a number of 1",
        ),
        ("move a/b/c", "POD: 'a/b/c' is not a pod; write NAME or NAMESPACE/NAME"),
        ("explain pod /a", "NAME: '/a' is not a pod; write NAME or NAMESPACE/NAME"),
        ("get --nope", "No such option: --nope"),
        ("gett", "No such command 'gett'. Did you mean 'get'? See "),
        ("describe", "NAME: is missing; see "),
        ("top nodes --kubeconfig", "Option '--kubeconfig' requires an argument"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_is_taken(words: str, line: str) -> None:
    result = CliRunner().invoke(app, words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"reserver: {line}")
    assert len(result.stderr.splitlines()) == 1
    assert "Value error" not in result.stderr


@pytest.mark.parametrize("words", list(commands())[1:], ids=" ".join)
def test_each_command_has_examples_that_it_takes(words: tuple[str, ...]) -> None:
    command: Any = get_command(app)
    for word in words:
        command = command.commands[word]
    examples = Help.of(command).examples
    assert examples
    assert max(map(len, examples.splitlines())) < 79
    for line in examples.replace("|\n ", "| ").splitlines():
        parts = [shlex.split(part, comments=True) for part in re.split(r"[|()]|&&", line)]
        assert any(part[part.index("reserver") :] for part in parts if "reserver" in part)
        for part in parts:
            if "reserver" in part:
                read(part[part.index("reserver") + 1 :])


def read(arguments: list[str]) -> None:
    """Read arguments as the command line does, and run nothing."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    command.make_context(command.name, arguments)


def test_examples_stand_apart_from_what_a_command_does() -> None:
    class Command:
        help = "Do it. Well.\n\nMore.\n\nExamples:\n    reserver do it\n"

    told = Help.of(Command)
    assert told == ("Do it. Well.\n\nMore.", "reserver do it")
    assert told.first_sentence == "Do it."
