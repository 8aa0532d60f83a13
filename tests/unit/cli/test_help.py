"""Help as a terminal shows it, and errors about invalid options."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hack.cli_reference import page
from reserver.cli.help import Help, tree
from reserver.cli.main import SUMMARIES, app
from reserver.cli.target import CONNECTION

COMMANDS = dict(tree(get_command(app)))


@pytest.mark.parametrize("columns", ["80", "160"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_cuts_no_flag_and_fits_the_terminal(words: tuple[str, ...], columns: str) -> None:
    result = CliRunner().invoke(app, [*words, "--help"], terminal_width=int(columns) - 2)
    assert result.exit_code == 0
    for each in COMMANDS[words].params:
        if each.hidden or (each.rich_help_panel == CONNECTION and words != ("options",)):
            continue
        flags = [name for name in (*each.opts, *each.secondary_opts) if name.startswith("-")]
        shown = result.stdout.replace("--[no-]", "--") + result.stdout.replace("--[no-]", "--no-")
        assert all(flag in shown for flag in flags)
    assert "…" not in result.stdout.replace("LIMIT,…", "")
    for kind in ("<str>", "<bool>", "list[", "<path>", "<int", "....."):
        assert kind not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= int(columns)


@pytest.mark.parametrize(("words", "most"), [("serve", 65), ("create", 80), ("update", 70)])
def test_help_is_read_without_scrolling_for_long(words: str, most: int) -> None:
    result = CliRunner().invoke(app, [words, "--help"], terminal_width=98)
    assert len(result.stdout.splitlines()) <= most


def test_help_of_serve_points_to_the_file_instead_of_the_flags_that_it_replaces() -> None:
    result = CliRunner().invoke(app, ["serve", "--help"])
    assert "--default-quota" not in result.stdout
    assert "docs/configuration.md" in result.stdout
    assert "--default-quota" in page()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("get --phase lost", "--phase: 'lost' is not supported; write one of Pending, Activ"),
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
        ("get --zzz", "there is no option --zzz; see"),
        (
            "create a --owner deploymnt/x --cpu 1 --dry-run",
            "--owner: 'deploymnt' is not a kind; did you mean deployment?",
        ),
        ("create a --owner thing/x --dry-run", "--owner: 'thing' is not a kind; write the kind"),
        ("create a --owner pod/x --starts-at noon --dry-run", "--starts-at: 'noon' is not a time;"),
        ("create a --owner pod/x --wait=soon", "--wait: 'soon' is not a duration"),
        ("create a --wait 1h", "too many arguments: 1h; an optional value comes after =, as in"),
        ("gett", "there is no command 'gett'. Did you mean 'get'? See "),
        ("describe", "NAME: is missing; see "),
        ("top nodes --kubeconfig", "--kubeconfig: needs a value"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_is_taken(words: str, line: str) -> None:
    result = CliRunner().invoke(app, words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"reserver: {line}")
    assert len(result.stderr.splitlines()) == 1
    assert "Value error" not in result.stderr


@pytest.mark.parametrize("words", list(COMMANDS)[1:], ids=" ".join)
def test_each_command_has_examples_that_it_takes(words: tuple[str, ...]) -> None:
    examples = Help.of(COMMANDS[words]).examples
    assert examples
    assert max(map(len, examples.splitlines())) < 79
    for line in examples.replace("|\n ", "| ").splitlines():
        parts = [shlex.split(part, comments=True) for part in re.split(r"[|()]|&&", line)]
        assert any(part[part.index("reserver") :] for part in parts if "reserver" in part)
        for part in parts:
            if "reserver" in part:
                read(part[part.index("reserver") + 1 :])


def read(arguments: list[str]) -> None:
    """Parse arguments as the command line does, without running a command."""
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    path = max((each for each in COMMANDS if each == tuple(arguments[: len(each)])), key=len)
    COMMANDS[path].make_context(path[-1], arguments[len(path) :])


def test_the_list_of_commands_says_what_each_says_first() -> None:
    listed = {name: text for each in SUMMARIES.values() for name, text in each.items()}
    assert listed == {
        w[0]: Help.of(each).first_sentence for w, each in COMMANDS.items() if len(w) == 1
    }


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("whatif -f pair.yaml", "`reserver whatif` is now `reserver create --dry-run=server`"),
        ("top reservations -n a", "`reserver top reservations` is now `reserver get -o wide`"),
        ("pause web-0", "`reserver pause` is now `reserver moves pause`"),
        ("resume web-0", "`reserver resume` is now `reserver moves resume`"),
        ("debug dump", "`reserver debug dump` is now `reserver dump`"),
    ],
)
def test_an_old_name_answers_with_the_new_one(words: str, line: str) -> None:
    result = CliRunner().invoke(app, words.split())
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"reserver: {line}\n")


def test_an_option_before_a_command_below_moves_is_refused() -> None:
    result = CliRunner().invoke(app, ["moves", "-n", "shop", "pause", "web-0"])
    line = "reserver: --namespace: belongs after pause; write it there\n"
    assert (result.exit_code, result.stderr) == (2, line)


def test_examples_stand_apart_from_what_a_command_does() -> None:
    class Command:
        help = "Do it. Well.\n\nMore.\n\nExamples:\n    reserver do it\n"

    found = Help.of(Command)
    assert found == ("Do it. Well.\n\nMore.", "reserver do it")
    assert found.first_sentence == "Do it."
