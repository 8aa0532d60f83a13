"""The commands and files of a page, and a shell that runs them as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.programs import done
from hack.reserver_process import wait_for

ROOT = Path(__file__).parents[1]
NOT_HERE = ("make ", "reserver demo", "pip install ", "pipx ", "sha256sum ")
"""Commands that start, check or install something of their own: CI runs these by themselves."""

_LIMIT_S = 300
_BLOCK = re.compile(r"^```(console|yaml|python|go)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REFUSED = re.compile(r"^(reserver: |Error |The \w+ \")", re.MULTILINE)
_QUESTION = re.compile(
    r"(kubectl( -n \S+)? (get|describe|auth can-i)|reserver (history|describe)) "
)
_VARYING = (
    (re.compile(r"\b(?:\d+[dhms]){1,2}\b"), "SPAN"),
    (re.compile(r"until (?:20\d\d-\d\d-\d\d )?\d\d:\d\d(?: tomorrow)?$", re.MULTILINE), "until T"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z"), "MOMENT"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-NAME"),  # as controllers make them
    (re.compile(r"\b[0-9a-f]{32}\b"), "UID"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "HASH"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"^ | $", re.MULTILINE), ""),
)
_LEFT_OUT = "…\n"
_GO = {"GOPATH": str(Path.home() / "go"), "GOCACHE": str(Path.home() / ".cache/go-build")}
"""Go's build cache, which stays the same although each reader has a new home folder."""


@dataclass(frozen=True)
class Command:
    """A command of a page, and its output on the page; empty if the page shows none."""

    line: str
    expected: str

    @property
    def is_question(self) -> bool:
        """Whether the command changes nothing, so that it may be repeated until it matches."""
        return "--dry-run" in self.line or _QUESTION.match(self.line) is not None

    def is_met_by(self, status: int, said: str) -> bool:
        """Return whether status and output match the page; `…` at a line's end stands for more."""
        if status and not _REFUSED.search(self.expected):
            return False
        if not self.expected:
            return True
        parts = map(re.escape, _normal(self.expected).split(_LEFT_OUT))
        return re.fullmatch(".*".join(parts), _normal(said), re.DOTALL) is not None


def blocks(page: str, section: str = "") -> Iterator[Command | tuple[str, str]]:
    """Yield the commands of a page, or a section, and its files as (name, content), in order."""
    text = (ROOT / page).read_text()
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for kind, block in _BLOCK.findall(text):
        if kind != "console":
            name = re.match(r"(?:#|//) (\S+\.(?:yaml|py|go))\n", block)
            if name:
                yield name[1], block
            continue
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = step.partition("\n")
            while line.endswith("\\") or line.count("'") % 2:
                more, _, expected = expected.partition("\n")
                line = f"{line}\n{more}"
            yield Command(line, expected)


def commands(page: str) -> list[Command]:
    return [block for block in blocks(page) if isinstance(block, Command)]


def section(page: str, title: str) -> list[str]:
    """Return the commands below a heading."""
    text = (ROOT / page).read_text().partition(f"# {title}\n")[2]
    found = re.findall(r"^\$ (.*)$", re.split(r"^#+ ", text, flags=re.MULTILINE)[0], re.MULTILINE)
    assert found, f"no commands under {title!r}"
    return found


def _normal(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return f"{text.strip()}\n"


class Reader:
    """A reader who runs the commands of a page, in a folder with the files of a checkout."""

    def __init__(self, folder: Path, environment: Mapping[str, str], first: str = "true") -> None:
        """Run `first` before each line."""
        self.folder = folder
        self._first = first
        self._environment = {**_GO, **os.environ, **environment, "HOME": str(folder)}
        for name in ("examples", "scheduler-config", "charts", "monitoring", "hack", "tests"):
            (folder / name).symlink_to(ROOT / name)

    def run(self, line: str) -> tuple[int, str]:
        """Run a line; return its exit status and its output."""
        told = done(
            *("bash", "-c", f"{self._first}; {line}"),
            timeout_s=_LIMIT_S,
            cwd=self.folder,
            env=self._environment,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        return told.returncode, told.stdout

    def has(self, line: str) -> None:
        """Run a line that has to succeed."""
        status, said = self.run(line)
        assert status == 0, f"{line}\n{said}"

    def follow(
        self,
        page: str,
        section: str = "",
        *,
        only: tuple[str, ...] = (),
        but: tuple[str, ...] = (),
    ) -> None:
        """Run the commands of a page, and check their output.

        Args:
            page: its path.
            section: heading of the section to run; empty for the whole page.
            only: beginnings of the commands to run; empty for all.
            but: beginnings of the commands to leave out.
        """
        for block in blocks(page, section):
            if not isinstance(block, Command):
                (self.folder / block[0]).write_text(block[1])
            elif block.line.startswith(only or "") and not block.line.startswith((*NOT_HERE, *but)):
                self._do(block)

    def _do(self, command: Command) -> None:
        last = ""

        def happens() -> bool:
            nonlocal last
            status, last = self.run(command.line)
            return command.is_met_by(status, last)

        if not happens():
            assert command.is_question, f"{command.line}\n{last}"
            wait_for(happens, f"`{command.line}` prints what the page says, not\n{last}")
