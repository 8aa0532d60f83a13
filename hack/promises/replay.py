"""From a history to the cluster over time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from hack.promises.amounts import amounts, pod_requests
from hack.promises.entries import DEFAULT_TTL_S, Entry, Place, read_key, read_parts
from hack.promises.history import Gap, History, Line, Moment
from hack.promises.world import Binding, Life, Node, NodeState, Pod, PodState, World

_CLAIMS = "reserver.io/claims"
_STAMP_SLACK_S = 3.0
"""A ttl counts from when Reserver saw the entry, in whole seconds; we saw it a little later."""


def replay(history: History) -> World:
    """Return the cluster over time."""
    by_uid: dict[str, list[Line]] = {}
    by_node: dict[str, list[Line]] = {}
    by_configmap: dict[str, list[Line]] = {}
    by_object: dict[str, list[Line]] = {}
    of = {"nodes": by_node, "configmaps": by_configmap, "reservations": by_object}
    for line in history.lines:
        if line.collection == "pods":
            by_uid.setdefault(line.item["metadata"]["uid"], []).append(line)
        else:
            of[line.collection].setdefault(line.name, []).append(line)
    gaps = {name: _gaps(history, name) for name in ("pods", *of)}
    heirs = _heirs(by_uid.values())
    pods = tuple(_pod(lines, gaps["pods"], heirs.get(uid)) for uid, lines in by_uid.items())
    nodes = {name[1:]: tuple(_nodes(lines, gaps["nodes"])) for name, lines in by_node.items()}
    lives = [
        life
        for name, lines in by_configmap.items()
        for life in _Store(name, gaps["configmaps"]).lives(lines)
    ]
    for name, lines in by_object.items():
        lives += _Object(name.partition("/")[0], gaps["reservations"]).lives(lines)
    lives.sort(key=lambda life: life.written.revision)
    return World(history, pods, nodes, tuple(lives))


def _gaps(history: History, collection: str) -> tuple[Gap, ...]:
    return tuple(gap for gap in history.gaps if gap.collection == collection)


# Pods


def _heirs(pods: Iterable[list[Line]]) -> dict[str, Line]:
    """Return how the next pod of the same name was first seen, by UID."""
    named: dict[str, list[list[Line]]] = {}
    for lines in sorted(pods, key=lambda lines: lines[0].moment):
        named.setdefault(lines[0].name, []).append(lines)
    return {
        before[0].item["metadata"]["uid"]: after[0]
        for group in named.values()
        for before, after in pairwise(group)
    }


def _pod(lines: list[Line], gaps: tuple[Gap, ...], heir: Line | None) -> Pod:
    first, last = lines[0], lines[-1]
    spec, metadata = last.item["spec"], last.item["metadata"]
    living = lines[:-1] if last.kind == "DELETED" else lines
    return Pod(
        uid=metadata["uid"],
        name=first.name,
        scheduler=spec.get("schedulerName") or "default-scheduler",
        priority=spec.get("priority") or 0,
        only_capacity=_asks_for_capacity_only(spec),
        states=tuple(_pod_state(line) for line in living or lines),
        binding=_binding(living, gaps),
        gone=_gone(lines, gaps, heir),
    )


def _pod_state(line: Line) -> PodState:
    spec, status = line.item["spec"], line.item.get("status") or {}
    conditions = status.get("conditions") or ()
    refusals = (
        c.get("message") or ""
        for c in conditions
        if c["type"] == "PodScheduled" and c["status"] == "False"
    )
    return PodState(
        moment=line.moment,
        node=spec.get("nodeName") or "",
        done=status.get("phase") in {"Succeeded", "Failed"},
        requests=pod_requests(spec),
        refusal=next(refusals, ""),
        nominated=status.get("nominatedNodeName") or "",
    )


def _binding(lines: list[Line], gaps: tuple[Gap, ...]) -> Binding | None:
    """Return the binding, if the pod was seen, or certainly was, without a node before."""
    before: Moment | None = None
    for line in lines:
        node = line.item["spec"].get("nodeName")
        if not node:
            before = line.moment
            continue
        moment = line.moment
        if line.kind == "LISTED":
            gap = _gap_over(moment, gaps)
            if gap is None:
                return None  # Bound before the recording began.
            before = max(before or gap.since, gap.since)
            moment = Moment(gap.until.revision, moment.at)
        return Binding(
            moment,
            before or moment,
            node,
            _claims(line.item),
            created=before is None,
            late=line.kind == "LISTED",
        )
    return None


def _claims(item: Mapping[str, Any]) -> frozenset[str]:
    text = (item["metadata"].get("annotations") or {}).get(_CLAIMS, "[]")
    try:
        return frozenset(claim.rpartition("@")[0].partition("#")[0] for claim in json.loads(text))
    except (ValueError, TypeError, AttributeError):
        return frozenset()


def _asks_for_capacity_only(spec: Mapping[str, Any]) -> bool:
    affinity = spec.get("affinity") or {}
    ports = [p for c in spec.get("containers") or () for p in c.get("ports") or ()]
    return not (
        affinity.get("podAffinity")
        or affinity.get("podAntiAffinity")
        or spec.get("topologySpreadConstraints")
        or spec.get("schedulingGates")
        or any("persistentVolumeClaim" in v for v in spec.get("volumes") or ())
        or any("hostPort" in port for port in ports)
    )


def _gap_over(moment: Moment, gaps: Iterable[Gap]) -> Gap | None:
    over = (g for g in gaps if g.since.revision < moment.revision <= g.until.revision)
    return next(over, None)


def _gone(lines: list[Line], gaps: tuple[Gap, ...], heir: Line | None = None) -> Moment | None:
    if lines[-1].kind == "DELETED":
        return lines[-1].moment
    last, name = lines[-1].moment.revision, lines[-1].name
    # One that came again under its name in the gap is there after it, and yet it went.
    until = heir.moment.revision if heir else -1
    later = (g for g in gaps if g.since.revision >= last)
    gap = next((g for g in later if name in g.gone or g.since.revision < until), None)
    return _beginning(gap) if gap else None


def _beginning(gap: Gap) -> Moment:
    """Return when what went in a gap may have gone at the earliest: it is not counted on."""
    return Moment(gap.since.revision + 1, gap.since.at)


# Nodes


def _nodes(lines: list[Line], gaps: tuple[Gap, ...]) -> Iterator[Node]:
    life: list[Line] = []
    for line in lines:
        if line.kind == "DELETED":
            if life:
                yield Node(tuple(map(_node_state, life)), line.moment)
            life = []
        else:
            life.append(line)
    if life:
        yield Node(tuple(map(_node_state, life)), _gone(life, gaps))


def _node_state(line: Line) -> NodeState:
    spec, status = line.item.get("spec") or {}, line.item.get("status") or {}
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    rest = {
        "labels": line.item["metadata"].get("labels"),
        "taints": spec.get("taints"),
        "unschedulable": spec.get("unschedulable"),
        "conditions": conditions,
    }
    return NodeState(line.moment, amounts(status.get("allocatable")), rest)


# The store


@dataclass
class _Store:
    """Reads the lives of one ConfigMap's entries from its versions."""

    configmap: str
    gaps: tuple[Gap, ...]
    holds_many: ClassVar[bool] = True

    def lives(self, lines: list[Line]) -> Iterator[Life]:
        """Yield them, in the order in which they end."""
        living: dict[Place, Life] = {}
        for line in lines:
            gap = _gap_over(line.moment, self.gaps) if line.kind == "LISTED" else None
            now = {} if line.kind == "DELETED" else self._entries(line.item)
            gone = _beginning(gap) if gap else line.moment
            for place in [place for place in living if not _goes_on(living[place], now)]:
                deleted = line.kind == "DELETED" and self.holds_many
                yield replace(living.pop(place), gone=gone, deleted=deleted, in_gap=gap is not None)
            for place, entry in now.items():
                if place in living:
                    living[place] = living[place].placed(entry, line.moment)
                else:
                    life = Life(place, entry, entry, line.moment)
                    living[place] = life.placed(entry, line.moment)
        end = _gone(lines, self.gaps)
        yield from (replace(life, gone=end, in_gap=end is not None) for life in living.values())

    def _entries(self, item: Mapping[str, Any]) -> dict[Place, Entry]:
        entries: dict[Place, Entry] = {}
        for key, text in (item.get("data") or {}).items():
            entries |= read_key(self.configmap, key, text)
        return entries


class _Object(_Store):
    """Reads the lives of what stood in one Reservation, as the only key of its namespace's store.

    Its place is ``namespace/name``; one that is deleted is an entry that is removed.
    """

    holds_many = False

    def _entries(self, item: Mapping[str, Any]) -> dict[Place, Entry]:
        entries = read_key(self.configmap, item["metadata"]["name"], json.dumps(item.get("spec")))
        parts = read_parts((item.get("status") or {}).get("placements"))
        return {
            place: entry if entry.node else replace(entry, placements=parts)
            for place, entry in entries.items()
        }


def _goes_on(life: Life, now: Mapping[Place, Entry]) -> bool:
    """Return whether the same reservation stands there now, perhaps with its ttl resolved."""
    after = now.get(life.place)
    if after is None or after == life.entry:
        return after is not None
    if life.entry.expires is not None or life.entry.ttl_s is None or after.expires is None:
        return False
    resolved = replace(life.entry, expires=after.expires, ttl_s=None)
    earliest = life.written.at + (life.entry.ttl_s or DEFAULT_TTL_S) - _STAMP_SLACK_S
    return resolved == after and after.expires >= earliest
