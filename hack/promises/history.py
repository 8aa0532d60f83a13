"""A recorded history: every write in the order of the API server's revisions, and the gaps.

etcd counts all writes of a cluster with one number, so sorting lines by the object's
resourceVersion gives the order in which they happened, whatever watch they came by.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

HISTORY = "history.jsonl"
MANAGER = "manager.jsonl"
_WRITES = frozenset(("ADDED", "MODIFIED", "DELETED", "LISTED"))


class Moment(NamedTuple):
    """One write.

    Attributes:
        revision: of the API server; orders all writes.
        at: when the recorder received it, unix seconds.
    """

    revision: int
    at: float


@dataclass(frozen=True)
class Line:
    """One write to one object.

    Attributes:
        moment: when.
        collection: pods, nodes, configmaps or reservations.
        kind: ADDED, MODIFIED, DELETED or LISTED.
        item: the object, as it was after the write; as it was before it for DELETED.
    """

    moment: Moment
    collection: str
    kind: str
    item: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the object's name, as ``namespace/name``; a node's begins with a slash."""
        return name_of(self.item)


@dataclass(frozen=True)
class Gap:
    """Revisions that nobody showed us: the API server had forgotten them when we asked.

    Attributes:
        collection: pods, nodes, configmaps or reservations.
        since: the last write that we saw before it.
        until: when all was listed anew.
        gone: what existed before and did not then, as ``namespace/name``.
    """

    collection: str
    since: Moment
    until: Moment
    gone: frozenset[str]


@dataclass(frozen=True)
class Outage:
    """A time in which the API server did not answer, or Reserver was stopped; unix seconds."""

    since: float
    until: float


@dataclass(frozen=True)
class Write:
    """A write of a manager to the store, by its own account.

    Attributes:
        at: unix seconds of the API server's response, or of the request.
        op: put or remove.
        configmap: as ``namespace/name``.
        key: the data key.
        item: in a list, the owner as ``namespace/name``; empty for the whole key.
        value: the written text.
    """

    at: float
    op: str
    configmap: str
    key: str
    item: str = ""
    value: str = ""


@dataclass(frozen=True)
class History:
    """The recorded writes and gaps.

    Attributes:
        lines: every write, in order.
        gaps: ranges of missing writes.
        outages: outages of the API server, in order.
        manager: the writes of the manager; None without an account, and promises that depend on it
            are not judged.
        end: unix seconds of the end of the recording.
    """

    lines: tuple[Line, ...]
    gaps: tuple[Gap, ...] = ()
    outages: tuple[Outage, ...] = ()
    manager: tuple[Write, ...] | None = None
    end: float = 0.0

    def revision_at(self, at: float) -> int:
        """Return the last revision that the recorder had received at a time, 0 if none."""
        times, revisions = self._clock
        index = bisect_right(times, at)
        return revisions[index - 1] if index else 0

    @cached_property
    def _clock(self) -> tuple[list[float], list[int]]:
        # Watches are not in step: a later revision may arrive a little earlier.
        moments = [line.moment for line in self.lines]
        return list(accumulate((m.at for m in moments), max)), [m.revision for m in moments]


def with_outages(history: History, outages: Iterable[Outage]) -> History:
    """Return a history with outages that only others have noticed."""
    return replace(history, outages=_merged((*history.outages, *outages)))


def name_of(item: Mapping[str, Any]) -> str:
    """Return an object's name, as ``namespace/name``."""
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def read_history(folder: Path) -> History:
    """Return the history that a recorder wrote, with the manager's account if there is one."""
    manager = folder / MANAGER
    return history_of(_read(folder / HISTORY), list(_read(manager)) if manager.exists() else None)


def history_of(
    records: Iterable[Mapping[str, Any]], manager: Iterable[Mapping[str, Any]] | None = None
) -> History:
    """Return a history from its lines as written."""
    lines: dict[tuple[str, str, str, bool], Line] = {}
    gaps: list[Gap] = []
    outages: list[Outage] = []
    end = 0.0
    last: dict[str, float] = {}
    for record in records:
        at, kind, item = record["at"], record["type"], record["object"]
        end = max(end, at)
        if kind == "OUTAGE":
            outages.append(Outage(item["since"], at))
        if kind not in _WRITES and kind != "GAP":
            continue
        collection = record["collection"]
        moment = Moment(int(item["metadata"]["resourceVersion"]), at)
        if kind == "GAP":
            since = Moment(int(item["since"]), last.get(collection, 0.0))
            gaps.append(Gap(collection, since, moment, frozenset(item["gone"])))
        else:
            line = Line(moment, collection, kind, item)
            # A ConfigMap that is labelled and named comes by two watches.
            key = (collection, line.name, item["metadata"]["resourceVersion"], kind == "DELETED")
            lines.setdefault(key, line)
        last[collection] = at
    return History(
        tuple(sorted(lines.values(), key=lambda line: line.moment.revision)),
        tuple(gaps),
        _merged(outages),
        None if manager is None else tuple(_write(record) for record in manager),
        end,
    )


def _merged(outages: Iterable[Outage]) -> tuple[Outage, ...]:
    """Return outages in order, with overlapping ones merged: each watch records its own."""
    merged: list[Outage] = []
    for outage in sorted(outages, key=lambda outage: outage.since):
        if merged and outage.since <= merged[-1].until:
            last = merged.pop()
            merged.append(Outage(last.since, max(last.until, outage.until)))
        else:
            merged.append(outage)
    return tuple(merged)


def _write(record: Mapping[str, Any]) -> Write:
    value = record.get("value") or ""
    if not isinstance(value, str):
        value = msgspec.json.encode(value).decode()
    ref = (record["configmap"], record["key"], record.get("item") or "")
    return Write(record["at"], record["op"], *ref, value)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):  # The last one of a killed recorder may be half a line.
                yield msgspec.json.decode(line)
