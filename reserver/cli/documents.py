"""The documents of files, YAML or JSON, one or several, each with its position."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reserver.cli.failure import Failed, Status
from reserver.errors import InvalidInput
from reserver.wire.spec import document as texts

STDIN = "-"

_MOST_BYTES = 64 * 2**20
_BREAK = re.compile(r"^---(?=[ \t\r]|$)[^\n]*\n?", re.MULTILINE)
_SUFFIXES = {".json", ".yaml", ".yml"}


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a file.

    Attributes:
        where: ``FILE``, or ``FILE:NUMBER`` of a file that has several, counted from 1.
        value: what it says; None if it could not be read.
        problem: why it could not be read.
    """

    where: str
    value: Any = None
    problem: InvalidInput | None = None

    @property
    def kind(self) -> str:
        """Of a Kubernetes object; empty for anything else."""
        return str(self.value.get("kind", "")) if isinstance(self.value, dict) else ""


def read_files(names: Iterable[str]) -> list[Document]:
    """Return the documents of files, of the files of folders, and of standard input (``-``).

    Raises:
        Failed: a file cannot be read, or is empty.
    """
    documents = []
    for name in names:
        found = [each for file in _files(name) for each in _split(file, _text(file))]
        if not found:
            raise Failed(Status.REFUSED, f"{name}: has no document; write a reservation")
        documents += found
    return documents


def read_text(name: str, text: str) -> list[Document]:
    """Return the documents of a text, which is called `name`."""
    return list(_split(name, text))


def _files(name: str) -> list[str]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [name]
    return sorted(str(each) for each in path.iterdir() if each.suffix in _SUFFIXES)


def _text(name: str) -> str:
    try:
        if name == STDIN:
            raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(_MOST_BYTES + 1)
    except OSError as exc:
        raise Failed(Status.USAGE, f"--filename: {name} cannot be read: {exc.strerror}") from exc
    if len(raw) > _MOST_BYTES:
        raise Failed(Status.REFUSED, f"{name}: is larger than 64 MiB; split it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise Failed(Status.REFUSED, f"{name}: is not UTF-8; save it as UTF-8") from exc


def _split(name: str, text: str) -> Iterator[Document]:
    parts = [part for part in _BREAK.split(text) if not _is_empty(part)]
    for number, part in enumerate(parts, start=1):
        where = f"{name}:{number}" if len(parts) > 1 else name
        try:
            value = texts.parse(part, _MOST_BYTES)
        except InvalidInput as exc:
            yield Document(where, problem=exc)
        else:
            yield from _items(where, value)


def _is_empty(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    return not any(line and not line.startswith("#") and line != "..." for line in lines)


def _items(where: str, value: Any) -> Iterator[Document]:  # noqa: ANN401 - whatever YAML can hold
    """Yield the items of a list: a JSON list, a List of Kubernetes, or what `get -o` prints."""
    items = value
    if isinstance(value, dict):
        is_list = str(value.get("kind", "")).endswith("List")
        is_ours = value.keys() == {"reservations"}
        items = value.get("items") if is_list else value["reservations"] if is_ours else None
    if not isinstance(items, list):
        yield Document(where, value)
        return
    for index, item in enumerate(items):
        yield Document(f"{where}[{index}]", item)
