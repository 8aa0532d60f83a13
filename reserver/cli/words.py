"""Words that are no commands, and the command that is meant."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from typing import Any

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
