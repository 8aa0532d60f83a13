"""The recorder misses nothing that the API server still has, and reports each other gap."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3

from hack.promises.history import read_history
from hack.promises.record import Journal
from hack.promises.watch import Watch

EXPIRED = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}


def node(name: str, revision: int) -> dict[str, Any]:
    metadata = {"name": name, "resourceVersion": str(revision), "managedFields": [{"big": "x"}]}
    return {"metadata": metadata, "spec": {}}


def listing(revision: int, *items: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(revision)}, "items": list(items)}


def event(kind: str, name: str, revision: int) -> dict[str, Any]:
    return {"type": kind, "object": node(name, revision)}


class Response:
    def __init__(self, said: Any) -> None:
        self._said = said
        self.data = json.dumps(said).encode()

    def stream(self, _: int) -> Iterator[bytes]:
        """Yield the bytes of the events in pieces of any length."""
        text = b"".join(json.dumps(each).encode() + b"\n" for each in self._said)
        yield from (text[start : start + 7] for start in range(0, len(text), 7))

    def close(self) -> None:
        pass


def record(tmp_path: Path, *answers: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records of a watch of these answers, and the resourceVersions of its requests."""
    stopping, asked = threading.Event(), []
    script = iter(answers)

    def request(**parameters: Any) -> Response:
        asked.append(parameters.get("resource_version", "list"))
        answer = next(script, None)
        if answer is None:
            stopping.set()
            raise urllib3.exceptions.ProtocolError("the script is over")
        if isinstance(answer, Exception):
            raise answer
        return Response(answer)

    journal = Journal(tmp_path / "history.jsonl")
    watch = Watch("nodes", request, journal.write, stopping)
    watch.run()
    assert watch.listed.is_set()
    journal.end()
    journal.write("nodes", "ADDED", node("too-late", 99))
    *lines, end = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
    assert end["type"] == "END"
    return lines, asked


def test_what_is_listed_and_watched_is_written_without_managed_fields(tmp_path: Path) -> None:
    lines, asked = record(
        tmp_path,
        listing(5, node("a", 3)),
        [event("ADDED", "b", 6), event("BOOKMARK", "", 9)],
        [event("DELETED", "b", 12)],
    )
    assert asked == ["list", "5", "9", "12"]
    assert [line["type"] for line in lines] == ["LISTED", "ADDED", "DELETED"]
    assert all("managedFields" not in line["object"]["metadata"] for line in lines)
    assert [x.moment.revision for x in read_history(tmp_path).lines] == [3, 6, 12]


def test_a_broken_connection_is_resumed_where_it_was(tmp_path: Path) -> None:
    fault = urllib3.exceptions.ProtocolError("connection reset")
    lines, asked = record(tmp_path, listing(5), fault, fault, [event("ADDED", "b", 6)])
    assert asked == ["list", "5", "5", "5", "6"]
    assert [line["type"] for line in lines] == ["OUTAGE", "ADDED"]
    (outage,) = read_history(tmp_path).outages
    assert outage.until - outage.since > 0.1


def test_what_the_api_server_has_forgotten_is_a_gap(tmp_path: Path) -> None:
    lines, asked = record(
        tmp_path,
        listing(5, node("kept", 2), node("gone", 3), node("changed", 4)),
        [EXPIRED],
        listing(20, node("kept", 2), node("changed", 15), node("new", 17)),
        [event("DELETED", "kept", 21)],
    )
    assert asked == ["list", "5", "list", "20", "21"]
    history = read_history(tmp_path)
    (gap,) = history.gaps
    assert (gap.since.revision, gap.until.revision, gap.gone) == (5, 20, frozenset({"/gone"}))
    kinds = [(line["type"], line["object"]["metadata"].get("name")) for line in lines[4:]]
    assert kinds == [("LISTED", "changed"), ("LISTED", "new"), ("DELETED", "kept")]
