"""Words that are no commands, and the command that is meant."""

from __future__ import annotations

import shlex

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
