"""Answers of Prometheus to instant queries, read strictly: evictions follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.objects import decode as decode_object
from reserver.rebalance.metrics_api import few

_NODE_LABELS = ("node", "nodename", "instance")
"""Labels that may name the node, the first that does."""

_LABELS_SHOWN = 300

MOST = 2.0**53
"""Largest value that is an amount, as of a resource that is requested."""

T = TypeVar("T")
Key = TypeVar("Key")


class _Series(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value, and when it was so.

    Attributes:
        at: unix seconds.
        value: not negative, and at most `MOST`.
    """

    at: float
    value: float


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of nodes that a query returned.

    Attributes:
        nodes: by name.
        problems: series of machines that are no nodes.
    """

    nodes: Mapping[str, Sample]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSamples:
    """The samples of pods that a query returned.

    Attributes:
        pods: by namespace and name.
        problems: series without a pod or an amount.
    """

    pods: Mapping[PodName, Sample]
    problems: tuple[str, ...] = ()


def read_nodes(raw: bytes, nodes: Container[str]) -> Samples:
    """Return the samples of an answer, by node.

    Series of unknown nodes, such as a node that has just been deleted, are ignored and counted.

    Args:
        raw: the answer.
        nodes: names of all nodes.

    Raises:
        InvalidInput: the answer is an error or no vector; a value is no amount; a node has two
            series, or no series belongs to a node.
    """
    strangers: list[str] = []

    def node_of(labels: Mapping[str, str]) -> str | None:
        for label in _NODE_LABELS:
            value = labels.get(label, "")
            for name in (value, value.rpartition(":")[0]):
                if name and name in nodes:
                    return name
        strangers.append(f"{_shown(labels)} belongs to no node")
        return None

    found = _read(raw, node_of)
    if strangers and not found:
        problem = f"no series belongs to a node of the cluster: {strangers[0]}"
        remedy = "write a query whose label node, nodename or instance is the node's name"
        raise InvalidInput("data.result", problem, remedy)
    return Samples(found, few(strangers))


def read_pods(raw: bytes) -> PodSamples:
    """Return the samples of an answer, by the labels ``namespace`` and ``pod``.

    A series without them, or whose value is no amount, is passed over and named: whoever has a pod
    that Prometheus scrapes may add series.

    Raises:
        InvalidInput: the answer is an error or no vector, or a pod has two series.
    """
    broken: list[str] = []

    def pod_of(labels: Mapping[str, str]) -> PodName:
        if not (labels.get("namespace") and labels.get("pod")):
            problem = f"{_shown(labels)} has no label namespace or no label pod"
            raise InvalidInput("data.result", problem, "write a query that keeps both")
        return PodName(labels["namespace"], labels["pod"])

    found = _read(raw, pod_of, broken)
    return PodSamples(found, few(broken))


def failure(raw: bytes) -> str:
    """Return what Prometheus says is wrong with a query; empty if it does not say."""
    try:
        answer = _decode(_Answer, raw)
    except InvalidInput:
        return ""
    return shorten(": ".join(filter(None, (answer.error_type, answer.error))), _LABELS_SHOWN)


def _decode(kind: type[T], raw: bytes | msgspec.Raw) -> T:
    try:
        return decode_object(kind, raw)
    except InvalidInput as exc:
        remedy = "check that Prometheus answers at this URL"
        raise InvalidInput(exc.path, exc.problem, remedy) from exc


def _read(
    raw: bytes,
    key_of: Callable[[Mapping[str, str]], Key | None],
    broken: list[str] | None = None,
) -> dict[Key, Sample]:
    """Return the samples by key; add broken series to `broken`, or refuse them without it."""
    answer = _decode(_Answer, raw)
    if answer.status != "success" or answer.data is None:
        said = failure(raw) or f"its status is {answer.status!r}"
        raise InvalidInput("", said, "check Prometheus and the query")
    if answer.data.result_type != "vector":
        problem = f"{answer.data.result_type!r} is not an instant vector"
        raise InvalidInput("data.resultType", problem, "write a query that returns one")
    with under("data.result"):
        series = _decode(list[_Series], answer.data.result)
    found: dict[Key, Sample] = {}
    for each in series:
        try:
            sample, key = _sample(each), key_of(each.metric)
        except InvalidInput as exc:
            if broken is None:
                raise
            broken.append(exc.problem)
            continue
        if key is None:
            continue
        if key in found:
            problem = f"{key} has more than one series, the second is {_shown(each.metric)}"
            raise InvalidInput("data.result", problem, "sum by the label that names it")
        found[key] = sample
    return found


def _sample(series: _Series) -> Sample:
    at, text = series.value
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 <= value <= MOST and math.isfinite(at)):
        problem = f"{_shown(series.metric)} is {shorten(text)!r}, which is not an amount"
        raise InvalidInput("data.result", problem, "write a query without such series")
    return Sample(at, value)


def _shown(labels: Mapping[str, str]) -> str:
    text = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return "{" + shorten(text, _LABELS_SHOWN) + "}"
