"""Reads NodeMetrics and PodMetrics of metrics.k8s.io."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from reserver.cluster import quantity
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.objects import Metadata, WireStruct, decode
from reserver.k8s.objects.requests import Amounts
from reserver.k8s.objects.times import parse_duration, parse_moment
from reserver.rebalance.readings import Reading, Readings, Usage

_MOST_NAMED = 10
"""So many objects that cannot be read are named; the others are counted."""


class _List(WireStruct, frozen=True):
    kind: str
    items: list[msgspec.Raw]


class _Metrics(WireStruct, frozen=True):
    timestamp: str
    window: str
    metadata: Metadata = Metadata()


class _NodeMetrics(_Metrics, frozen=True):
    usage: Amounts | None = None


class _Container(WireStruct, frozen=True):
    usage: Amounts | None = None


class _PodMetrics(_Metrics, frozen=True):
    containers: list[_Container] | None = None


def read_usage(nodes: bytes, pods: bytes | None, now: float) -> Readings:
    """Return what lists of NodeMetrics and PodMetrics say; a broken item is passed over and named.

    Args:
        nodes: a NodeMetricsList.
        pods: a PodMetricsList; None if nobody asked for it.
        now: unix seconds; what claims to be of a later time is of now.

    Raises:
        InvalidInput: one of the lists is none.
    """
    problems: list[str] = []
    read_nodes: dict[str, Reading] = {}
    for raw in items(nodes, "NodeMetricsList"):
        try:
            node = decode(_NodeMetrics, raw)
            reading = _reading(node, (node.usage,), now)
        except InvalidInput as exc:
            problems.append(f"NodeMetrics {named(raw)}: {exc}")
            continue
        if node.metadata.name in read_nodes:
            problems.append(f"NodeMetrics {node.metadata.name}: is there twice")
        read_nodes[node.metadata.name] = reading
    read_pods: dict[PodName, Reading] = {}
    for raw in items(pods, "PodMetricsList") if pods is not None else ():
        try:
            pod = decode(_PodMetrics, raw)
            usages = [container.usage for container in pod.containers or ()]
            reading = _reading(pod, usages, now)
        except InvalidInput as exc:
            problems.append(f"PodMetrics {named(raw)}: {exc}")
            continue
        read_pods[PodName(pod.metadata.namespace, pod.metadata.name)] = reading
    return Readings(nodes=read_nodes, pods=read_pods, problems=few(problems))


def few(problems: list[str]) -> tuple[str, ...]:
    """Return the first problems and, if there are many, how many more there are."""
    more = len(problems) - _MOST_NAMED
    return (*problems[:_MOST_NAMED], *((f"and {more} more",) if more > 0 else ()))


def items(raw: bytes, kind: str) -> list[msgspec.Raw]:
    """Return the items of a list, unread.

    Raises:
        InvalidInput: it is none of this kind.
    """
    found = decode(_List, raw)
    if found.kind != kind:
        problem = f"{found.kind!r} is not {kind}"
        raise InvalidInput("kind", problem, "see to what answers for its API group")
    return found.items


def named(raw: msgspec.Raw) -> str:
    """Return the name of an item that cannot be read, as far as that can be."""
    try:
        metadata = decode(_Named, raw).metadata
    except InvalidInput:
        return "without a name"
    return f"{metadata.namespace}/{metadata.name}".removeprefix("/")


class _Named(WireStruct, frozen=True):
    metadata: Metadata = Metadata()


def _reading(metrics: _Metrics, usages: Iterable[Amounts | None], now: float) -> Reading:
    total: dict[str, float] = {}
    for usage in usages:
        for name, amount in amounts(usage).items():
            total[name] = total.get(name, 0.0) + amount
    at = min(parse_moment(metrics.timestamp), now)
    return Reading(total, at, parse_duration(metrics.window))


def amounts(usage: Amounts | None) -> Usage:
    """Return amounts as they are: one that is clamped to nothing would make a node look idle."""
    found: dict[str, float] = {}
    for name, text in (usage or {}).items():
        with under(f"usage.{name}"):
            amount = quantity.amount(name, str(text))
        if amount < 0:
            raise InvalidInput(f"usage.{name}", f"{text} is negative", "report what is used")
        found[name] = float(amount)
    return found
