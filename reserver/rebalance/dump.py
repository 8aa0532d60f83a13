"""The objects of a cluster: listed anew, or as ``kubectl get nodes,pods,… -A -o json`` dumps them.

A dump is a List in JSON or YAML, or several, or one JSON object a line.

Reading a large dump takes most of its time in Python's garbage collector unless the caller
disables it meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Protocol

import msgspec

from reserver.base.pacer import Pacer
from reserver.errors import ApiError, InvalidInput
from reserver.k8s.objects.objects import Metadata, WireStruct, decode, encode
from reserver.rebalance.dump_objects import Raw
from reserver.rebalance.dump_reader import REMEDY, AnyObject, Dump, DumpReading
from reserver.stores.codec.document import parse

MOST_YAML = 33_554_432
"""Characters of YAML, which takes a hundred times as long as JSON."""

_DOCUMENT = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)


def read_dump(raw: bytes) -> Dump:
    """Read a dump.

    Raises:
        InvalidInput: the text is not a dump.
    """
    reading = DumpReading()
    for place, document in _documents(raw):
        reading.take(place, document)
    return reading.result()


def read_lines(lines: Iterable[bytes]) -> Dump:
    """Read a dump with one object per line, without holding the text in memory.

    Raises:
        InvalidInput: there are too many objects.
    """
    reading = DumpReading()
    for place, line in _numbered(lines):
        reading.take(place, line)
    return reading.result()


def is_one_a_line(lines: Iterable[bytes]) -> bool:
    """Return whether one of the first two lines is an object, and there are several lines."""
    heads = [line for _, line in islice(_numbered(lines), 2)]
    if len(heads) == 1 or not all(line[:1] == b"{" for line in heads[:1]):
        return False
    return any(line[:1] == b"{" and _is_json(line) for line in heads)


def _documents(raw: bytes) -> Iterator[tuple[str, Raw]]:
    """Yield the JSON of each object or List, with where it is."""
    first = raw.lstrip()[:1]
    if not first:
        raise InvalidInput("", "the dump is empty", REMEDY)
    if first == b"[":
        items = decode(list[msgspec.Raw], raw)
        yield from ((f"object {number}", item) for number, item in enumerate(items, start=1))
    elif is_one_a_line(_lines(raw)):
        yield from _numbered(_lines(raw))
    elif first == b"{":
        yield "the dump", raw
    else:
        yield from _yaml(raw)


def _lines(raw: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start) + 1 or len(raw)
        yield raw[start:end]
        start = end


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the lines that are not blank, with where they are."""
    for number, line in enumerate(map(bytes.strip, lines), start=1):
        if line:
            yield f"line {number}", line


def _is_json(line: bytes) -> bool:
    try:
        decode(AnyObject, line)
    except InvalidInput:
        return False
    return True


def _yaml(raw: bytes) -> Iterator[tuple[str, bytes]]:
    if len(raw) > MOST_YAML:
        problem = f"{len(raw)} bytes of YAML are too many"
        raise InvalidInput("", problem, f"keep it under {MOST_YAML}, or write JSON (-o json)")
    try:
        documents = _DOCUMENT.split(raw.decode())
        for number, document in enumerate(filter(str.strip, documents), start=1):
            yield f"document {number}", encode(parse(document, MOST_YAML))
    except UnicodeDecodeError as exc:
        raise InvalidInput("", f"the dump is not UTF-8: {exc.reason}", REMEDY) from exc
    except InvalidInput as exc:
        raise InvalidInput(exc.path, exc.problem, REMEDY) from exc


COLLECTIONS = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
)
_PAGE = "500"
"""Objects of one answer: as many as kubectl asks for."""


class Lister(Protocol):
    """A client that lists collections of the API server."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return a page."""


class _Page(WireStruct, frozen=True):
    metadata: Metadata = Metadata()


async def list_cluster(client: Lister) -> Dump:
    """Read the cluster; an unreadable object is left out and named.

    Raises:
        ApiError: the API server refused, or did not answer.
        InvalidInput: an answer is no list.
    """
    try:
        return await _listed(client, {"limit": _PAGE})
    except ApiError as exc:
        if not exc.is_forgotten:  # The version that a first page was of is compacted by now.
            raise
    return await _listed(client, {})


async def _listed(client: Lister, first: Mapping[str, str]) -> Dump:
    """Read collections, a page after the other; memory holds one of them.

    Args:
        first: asks for the first page.
    """
    reading, pacer = DumpReading(), Pacer()
    for path in COLLECTIONS:
        following = ""
        while True:
            params = {**first, "continue": following} if following else dict(first)
            try:
                page = await client.get(path, params or None)
            except ApiError as exc:
                if exc.status != HTTPStatus.NOT_FOUND:  # Any other says what it is about.
                    raise
                raise ApiError(exc.status, exc.reason, f"the API server has no {path}") from exc
            reading.take("the dump", page)
            await pacer.give_way()
            following = decode(_Page, page).metadata.continue_
            if not following:
                break
    return reading.result()
