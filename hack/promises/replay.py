"""From a history to the cluster over time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from hack.promises.amounts import amounts, pod_requests
from hack.promises.gaps import ending, gap_over, gaps_of, went
from hack.promises.history import Gap, History, Line, Moment
from hack.promises.lives import ObjectReader, StoreReader
from hack.promises.occurrences import occurrences
from hack.promises.owners import traits
from hack.promises.pods import Binding, Pod, PodState
from hack.promises.world import Node, NodeState, World

_CLAIMS = "reserver.io/claims"
_MIRROR = "kubernetes.io/config.mirror"
_LENT = "reserver.io/lent"


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
        elif line.collection in of:
            of[line.collection].setdefault(line.name, []).append(line)
    gaps = {name: gaps_of(history, name) for name in ("pods", *of)}
    heirs = _heirs(by_uid.values())
    pods = tuple(_pod(lines, gaps["pods"], heirs.get(uid)) for uid, lines in by_uid.items())
    nodes = {name[1:]: tuple(_nodes(lines, gaps["nodes"])) for name, lines in by_node.items()}
    lives = [
        life
        for name, lines in by_configmap.items()
        for life in StoreReader(name, gaps["configmaps"]).lives(lines)
    ]
    for name, lines in by_object.items():
        lives += ObjectReader(name.partition("/")[0], gaps["reservations"]).lives(lines)
    lives = [each for life in lives for each in occurrences(life, history)]
    lives.sort(key=lambda life: life.written.revision)
    return World(history, pods, nodes, tuple(lives))


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
    end = ending(lines, gaps, heir)
    bound = (line.item for line in living or lines if line.item["spec"].get("nodeName"))
    return Pod(
        uid=metadata["uid"],
        name=first.name,
        scheduler=spec.get("schedulerName") or "default-scheduler",
        priority=spec.get("priority") or 0,
        only_capacity=_asks_for_capacity_only(spec),
        is_mirror=_MIRROR in (metadata.get("annotations") or {}),
        may_borrow=any(each.get("key") == _LENT for each in spec.get("tolerations") or ()),
        traits=tuple({traits(line.item["metadata"]): None for line in lines}),
        states=tuple(_pod_state(line) for line in living or lines),
        binding=_binding(living, gaps),
        claims=_claims(next(bound, last.item)),
        leaves=_leaves(lines),
        gone=end[0] if end else None,
        gone_by=end[1] if end else None,
    )


def _leaves(lines: list[Line]) -> Moment | None:
    """Return when a pod was first seen to be deleted."""
    leaving = (
        line.moment
        for line in lines
        if line.kind == "DELETED" or line.item["metadata"].get("deletionTimestamp")
    )
    return next(leaving, None)


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
            gap = gap_over(moment, gaps)
            if gap is None:
                return None  # Bound before the recording began.
            before = max(before or gap.since, gap.since)
            moment = Moment(gap.until.revision, moment.at)
        return Binding(
            moment,
            before or moment,
            node,
            created=before is None,
            late=line.kind == "LISTED",
            wanted=_created(line.item),
        )
    return None


def _created(item: Mapping[str, Any]) -> float:
    """Return when a pod was created, unix seconds; 0 if it does not say."""
    text = item["metadata"].get("creationTimestamp")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


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
        yield Node(tuple(map(_node_state, life)), went(life, gaps))


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
