"""Reads what nodes and pods use: objects of metrics.k8s.io, and NodeMetrics of Koordinator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from reserver.cluster import quantity
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.objects import Metadata, WireStruct, decode
from reserver.k8s.objects.requests import Amounts
from reserver.k8s.objects.times import parse_duration, parse_moment
from reserver.rebalance.readings import Reading, Readings, Usage

NODE_METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
_AVERAGED_S = 300.0
"""Over so many seconds Koordinator's agent averages unless its policy says otherwise."""

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
        raise InvalidInput("kind", problem, "check the server of its API group")
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


class _Usage(WireStruct, frozen=True):
    resources: Amounts | None = None


class _KoordinatorNode(WireStruct, frozen=True):
    node_usage: _Usage | None = None
    system_usage: _Usage | None = None


class _KoordinatorPod(WireStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    pod_usage: _Usage | None = None


class _KoordinatorStatus(WireStruct, frozen=True):
    update_time: str | None = None
    node_metric: _KoordinatorNode | None = None
    pods_metric: list[_KoordinatorPod | None] | None = None


class _CollectPolicy(WireStruct, frozen=True):
    aggregate_duration_seconds: int | None = None


class _KoordinatorSpec(WireStruct, frozen=True):
    metric_collect_policy: _CollectPolicy | None = None


class _NodeMetric(WireStruct, frozen=True):
    metadata: Metadata = Metadata()
    spec: _KoordinatorSpec | None = None
    status: _KoordinatorStatus | None = None


class _Read(NamedTuple):
    node: Reading
    pods: dict[PodName, Reading]


def read_node_metrics(raw: bytes, now: float) -> Readings:
    """Read a NodeMetricList; an invalid item is left out and named.

    The usage of a node is the usage of its pods and its system (getNodeUsage of LowNodeLoad), if
    the agent reports the system's.

    Args:
        raw: the list.
        now: unix seconds; a reading with a later time is taken as current.

    Raises:
        InvalidInput: the text is not such a list.
    """
    problems: list[str] = []
    nodes: dict[str, Reading] = {}
    pods: dict[PodName, Reading] = {}
    for each in items(raw, "NodeMetricList"):
        try:
            metric = decode(_NodeMetric, each)
            read = _read(metric, now)
        except InvalidInput as exc:
            problems.append(f"NodeMetric {named(each)}: {exc}")
            continue
        nodes[metric.metadata.name] = read.node
        for name, reading in read.pods.items():
            # A pod of this name may have run elsewhere before: the later report counts.
            if name not in pods or pods[name].at < reading.at:
                pods[name] = reading
    return Readings(nodes=nodes, pods=pods, problems=few(problems))


def _read(metric: _NodeMetric, now: float) -> _Read:
    status = metric.status
    if status is None or status.node_metric is None or status.update_time is None:
        remedy = "check koordlet on this node"
        raise InvalidInput("status", "has no data of the node yet", remedy)
    with under("status.updateTime"):
        at = min(parse_moment(status.update_time), now)
    policy = metric.spec.metric_collect_policy if metric.spec else None
    said_s = policy.aggregate_duration_seconds if policy else None
    window_s = float(said_s) if said_s is not None and said_s > 0 else _AVERAGED_S
    pods = {}
    total: dict[str, float] = {}
    for index, pod in enumerate(status.pods_metric or ()):
        if pod is not None and pod.pod_usage is not None:
            with under(f"status.podsMetric[{index}]"):
                used = amounts(pod.pod_usage.resources)
            pods[PodName(pod.namespace, pod.name)] = Reading(used, at, window_s)
            for name, amount in used.items():
                total[name] = total.get(name, 0.0) + amount
    node = status.node_metric
    whole = node.node_usage.resources if node.node_usage else None
    with under("status.nodeMetric"):
        usage = dict(amounts(whole))
        if node.system_usage is not None and node.system_usage.resources:
            system = amounts(node.system_usage.resources)
            usage |= {name: amount + total.get(name, 0.0) for name, amount in system.items()}
    return _Read(Reading(usage, at, window_s), pods)
