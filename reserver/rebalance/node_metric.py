"""Reads NodeMetric objects, in which Koordinator's agent says what a node and its pods use."""

from __future__ import annotations

from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.objects import Metadata, WireStruct, decode
from reserver.k8s.objects.requests import Amounts
from reserver.k8s.objects.times import parse_moment
from reserver.rebalance.metrics_api import amounts, few, items, named
from reserver.rebalance.readings import Reading, Readings

PATH = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
_AVERAGED_S = 300.0
"""Over so many seconds the agent averages unless its policy says otherwise."""


class _Usage(WireStruct, frozen=True):
    resources: Amounts | None = None


class _Node(WireStruct, frozen=True):
    node_usage: _Usage | None = None
    system_usage: _Usage | None = None


class _Pod(WireStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    pod_usage: _Usage | None = None


class _Status(WireStruct, frozen=True):
    update_time: str | None = None
    node_metric: _Node | None = None
    pods_metric: list[_Pod | None] | None = None


class _CollectPolicy(WireStruct, frozen=True):
    aggregate_duration_seconds: int | None = None


class _Spec(WireStruct, frozen=True):
    metric_collect_policy: _CollectPolicy | None = None


class _NodeMetric(WireStruct, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec | None = None
    status: _Status | None = None


class _Read(NamedTuple):
    node: Reading
    pods: dict[PodName, Reading]


def read_node_metrics(raw: bytes, now: float) -> Readings:
    """Return what a NodeMetricList says; a broken item is passed over and named.

    A node uses what its pods and its system use (getNodeUsage of LowNodeLoad), as long as the agent
    says what the system uses.

    Args:
        raw: the list.
        now: unix seconds; what claims to be of a later time is of now.

    Raises:
        InvalidInput: it is none.
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
        remedy = "see to koordlet on this node"
        raise InvalidInput("status", "says nothing of the node yet", remedy)
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
