"""The measured load of nodes and pods, smoothed over time.

Two effects make a rebalancer oscillate. A load that varies may be read at its peak: readings are
averaged (`readings`). And metrics show a move late: the load of a moved pod is subtracted from its
old node and added to its new one, until a reading covers only the time since the move.

The load of earlier rounds is a value: each function returns the next one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.rebalance.readings import Average, Reading, Readings, Usage, average, shifted

FORGOTTEN_S = 900.0
"""Seconds in which a pod that has moved because of its load stays where it is."""


class Departure(NamedTuple):
    """A pod that was evicted.

    Attributes:
        uid: of the pod.
        owner: UID of its controller; empty if it has none, and nobody replaces it.
        source: the node that the pod leaves.
        usage: the usage of the pod there.
        at: unix seconds of the eviction.
        grace_s: its termination grace period, in seconds.
    """

    uid: str
    owner: str
    source: str
    usage: Usage
    at: float
    grace_s: float = 30.0


class Standing(NamedTuple):
    """A pod that is there.

    Attributes:
        uid: of the pod.
        owner: UID of its controller, or empty.
        node: where it is bound to; empty while it is pending.
        created_at: unix seconds.
        started_at: since when it runs there, in unix seconds; infinite while it does not.
    """

    uid: str
    owner: str
    node: str
    created_at: float
    started_at: float = math.inf


@dataclass(frozen=True, slots=True)
class Moving:
    """The load of an evicted pod, which metrics may not show in its new place yet.

    Attributes:
        departure: the eviction.
        gone_at: unix seconds at which the pod has ended, or is expected to.
        successor: UID of its replacement; empty until the replacement is bound to a node.
        target: the node of the replacement.
        runs_at: unix seconds from which the replacement runs; infinite before.
    """

    departure: Departure
    gone_at: float
    successor: str = ""
    target: str = ""
    runs_at: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The load of earlier rounds.

    Attributes:
        nodes: averages by name of the node, corrected for moves.
        pods: averages by name of the pod, with the pod's UID.
        moving: recent moves.
    """

    nodes: Mapping[str, Average] = field(default_factory=dict)
    pods: Mapping[PodName, tuple[str, Average]] = field(default_factory=dict)
    moving: tuple[Moving, ...] = ()


NOTHING_SEEN = Memory()


def seen(memory: Memory, readings: Readings, uids: Mapping[PodName, str]) -> Memory:
    """Return the memory after more readings.

    Args:
        memory: the memory before the readings.
        readings: of nodes and pods; a node that is missing keeps its last average, and its age.
        uids: UIDs of the existing pods; readings of other pods are dropped.
    """
    latest = max((reading.at for reading in readings.nodes.values()), default=None)
    nodes = {
        name: known
        for name, known in memory.nodes.items()
        if latest is None or abs(known.at - latest) <= FORGOTTEN_S
    }
    for name, reading in readings.nodes.items():
        accounted = _accounted(reading, name, memory.moving)
        nodes[name] = average(nodes.get(name), accounted)
    pods: Mapping[PodName, tuple[str, Average]] = memory.pods
    if readings.pods:
        pods = {
            name: (uid, average(_same(memory.pods.get(name), uid, measured), measured))
            for name, uid in uids.items()
            if (measured := readings.pods.get(name)) is not None
        }
    return replace(memory, nodes=nodes, pods=pods)


def _same(before: tuple[str, Average] | None, uid: str, reading: Reading) -> Average | None:
    """Return a pod's average; None if another pod had its name, or of before a set back clock."""
    if before is None or before[0] != uid or before[1].at > reading.at + FORGOTTEN_S:
        return None
    return before[1]


def _accounted(reading: Reading, node: str, moving: Iterable[Moving]) -> Reading:
    """Return a reading as it would be had all that moves arrived before its window began."""
    usage = reading.usage
    for each in moving:
        if each.departure.source == node:
            usage = shifted(usage, each.departure.usage, -reading.share_before(each.gone_at))
        if each.target == node:
            usage = shifted(usage, each.departure.usage, reading.share_before(each.runs_at))
    return reading._replace(usage=usage)


def departed(memory: Memory, departures: Iterable[Departure]) -> Memory:
    """Return the memory after evictions: the load of evicted pods leaves their nodes."""
    nodes, moving = dict(memory.nodes), list(memory.moving)
    for each in departures:
        moving.append(Moving(each, each.at + each.grace_s))
        _shift(nodes, each.source, each.usage, -1)
    return replace(memory, nodes=nodes, moving=tuple(moving))


def _shift(nodes: dict[str, Average], name: str, amount: Usage, times: float) -> None:
    if (known := nodes.get(name)) is not None:
        nodes[name] = known._replace(usage=shifted(known.usage, amount, times))


def settled(memory: Memory, standing: Iterable[Standing], now: float) -> Memory:
    """Return the memory after a list of pods.

    A pod that outlives its grace period still counts as ending. The first pods of the same
    controller that were created since, and are bound, are taken for replacements; their expected
    load counts on their node from now on, without the part that the average has already.

    Args:
        memory: the memory before the list.
        standing: the pods of the cluster; only those of controllers with evicted pods matter.
        now: unix seconds.
    """
    owners = {each.departure.owner for each in memory.moving}
    leaving = {each.departure.uid for each in memory.moving}
    pods = sorted(
        (pod for pod in standing if pod.owner in owners or pod.uid in leaving),
        key=lambda pod: (pod.created_at, pod.uid),
    )
    present = {pod.uid for pod in pods}
    taken = {each.successor for each in memory.moving if each.successor}
    heirs = {pod.uid: pod.started_at for pod in pods}
    nodes, moving = dict(memory.nodes), []
    for each in memory.moving:
        updated = each
        if each.departure.uid in present and each.gone_at < now:
            updated = replace(updated, gone_at=now + each.departure.grace_s)
        if not each.successor and (heir := _heir(each, pods, taken)) is not None:
            taken.add(heir.uid)
            updated = replace(
                updated, successor=heir.uid, target=heir.node, runs_at=heir.started_at
            )
            if (known := nodes.get(heir.node)) is not None:
                unseen = known.share_before(heir.started_at)
                _shift(nodes, heir.node, each.departure.usage, unseen)
        elif heirs.get(each.successor, each.runs_at) != each.runs_at:
            updated = replace(updated, runs_at=heirs[each.successor])
        if abs(now - each.departure.at) < FORGOTTEN_S:
            moving.append(updated)
    return replace(memory, nodes=nodes, moving=tuple(moving))


def _heir(moving: Moving, pods: Iterable[Standing], taken: set[str]) -> Standing | None:
    gone = moving.departure
    for pod in pods:
        is_later = pod.created_at >= math.floor(gone.at) and pod.uid != gone.uid
        is_heir = gone.owner and pod.owner == gone.owner and is_later and pod.node
        if is_heir and pod.uid not in taken:
            return pod
    return None


def on_the_way(memory: Memory) -> Usage:
    """Return the load of evicted pods whose replacement is not bound yet; its room stays taken."""
    total: dict[str, float] = {}
    for each in memory.moving:
        if each.departure.owner and not each.successor:
            for name, amount in each.departure.usage.items():
                total[name] = total.get(name, 0.0) + amount
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothedLoad:
    """The smoothed load that a round acts on.

    Attributes:
        nodes: usage of nodes, by name.
        pods: usage of pods, by name.
        on_the_way: the load of evicted pods whose replacement is not bound yet.
        moved: UIDs of replacements of recently evicted pods.
    """

    nodes: Mapping[str, Average] = field(default_factory=dict)
    pods: Mapping[PodName, Usage] = field(default_factory=dict)
    on_the_way: Usage = field(default_factory=dict)
    moved: frozenset[str] = frozenset()


def load_of(memory: Memory) -> SmoothedLoad:
    """Return the load that a round acts on."""
    return SmoothedLoad(
        nodes=memory.nodes,
        pods={name: known.usage for name, (_, known) in memory.pods.items()},
        on_the_way=on_the_way(memory),
        moved=frozenset(each.successor for each in memory.moving if each.successor),
    )
