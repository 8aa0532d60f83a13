"""Kubernetes objects as the API server and kube-scheduler send them, decoded from raw bytes.

Only the fields that decisions need are named; msgspec passes over all others without building them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from cachetools import LRUCache

from reserver.cluster import quantity
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.request import Container, PodResources, effective_request
from reserver.errors import InvalidInput

CLAIMS_ANNOTATION = "reserver.io/claims"
"""On a bound pod: a JSON list of the identities of the reservations that its binding claimed."""

RETRY_ANNOTATION = "reserver.io/retry"
"""On a pending pod: any change of it makes kube-scheduler try the pod again."""

_MOST_DIGITS = 20
"""Of a 64-bit number."""

Amounts = dict[str, str | int | float]


class _Struct(msgspec.Struct, rename="camel", frozen=True):
    """Base of all objects here: camelCase on the wire, unknown fields passed over."""


class Metadata(_Struct, frozen=True):
    """The part of ``metadata`` that Reserver reads."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    continue_: str = msgspec.field(default="", name="continue")

    @property
    def revision(self) -> int:
        """The resourceVersion as the number that it is since Kubernetes 1.35 (KEP-5504), else 0."""
        text = self.resource_version
        return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else 0


class _Resources(_Struct, frozen=True):
    requests: Amounts | None = None


class _Container(_Struct, frozen=True):
    name: str = ""
    resources: _Resources | None = None
    restart_policy: str = ""


class _ContainerStatus(_Struct, frozen=True):
    name: str = ""
    allocated_resources: Amounts | None = None
    resources: _Resources | None = None


class _Preferences(_Struct, frozen=True):
    preferred_during_scheduling_ignored_during_execution: list[msgspec.Raw] | None = None


class _Affinity(_Struct, frozen=True):
    node_affinity: _Preferences | None = None
    pod_affinity: _Preferences | None = None
    pod_anti_affinity: _Preferences | None = None


class _SpreadConstraint(_Struct, frozen=True):
    when_unsatisfiable: str = ""


class _PodSpec(_Struct, frozen=True):
    node_name: str = ""
    priority: int | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    resources: _Resources | None = None
    overhead: Amounts | None = None
    affinity: _Affinity | None = None
    topology_spread_constraints: list[_SpreadConstraint] | None = None


class _Condition(_Struct, frozen=True):
    type: str = ""
    reason: str = ""


class _PodStatus(_Struct, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    allocated_resources: Amounts | None = None
    resources: _Resources | None = None


class PodObject(_Struct, frozen=True):
    """A Pod on the wire."""

    metadata: Metadata = Metadata()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    def value(self) -> Pod:
        """Return the pod as decisions see it.

        Raises:
            InvalidInput: a quantity is malformed; the error carries its path.
        """
        metadata, status = self.metadata, self.status
        return Pod(
            name=PodName(metadata.namespace, metadata.name),
            uid=metadata.uid,
            revision=metadata.revision,
            requests=_request(self.spec, status),
            node=self.spec.node_name,
            priority=self.spec.priority or 0,
            finished=status.phase in {"Succeeded", "Failed"},
            nominated_node=status.nominated_node_name,
            claims=_claims(metadata.annotations),
            has_preferences=_has_preferences(self.spec),
        )


class _NodeStatus(_Struct, frozen=True):
    allocatable: Amounts | None = None


class NodeObject(_Struct, frozen=True):
    """A Node on the wire."""

    metadata: Metadata = Metadata()
    status: _NodeStatus = _NodeStatus()

    def value(self) -> Node:
        """Return the node as decisions see it.

        Raises:
            InvalidInput: a quantity is malformed; the error carries its path.
        """
        nano = _nano(self.status.allocatable, "status.allocatable")
        allocatable = {name: quantity.to_unit(name, value) for name, value in nano.items()}
        return Node(name=self.metadata.name, allocatable=allocatable)


class ConfigMapObject(_Struct, frozen=True):
    """A ConfigMap on the wire."""

    metadata: Metadata = Metadata()
    data: dict[str, str] | None = None


T = TypeVar("T")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a type, as msgspec takes it
    return msgspec.json.Decoder(kind)


def decode(kind: type[T], raw: bytes | msgspec.Raw) -> T:
    """Return JSON as one of the types above.

    Raises:
        InvalidInput: it is not JSON, or not of that shape; the error carries the path.
    """
    try:
        decoded: T = _decoder(kind).decode(raw)  # type: ignore[arg-type]  # types do hash
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise from_msgspec(exc, "send the object as the Kubernetes API defines it") from exc
    return decoded


def from_msgspec(error: Exception, remedy: str) -> InvalidInput:
    """Return what msgspec found as an error that names the field."""
    problem, _, path = str(error).partition(" - at `$")
    return InvalidInput(path.rstrip("`").lstrip("."), quantity.shorten(problem, 200), remedy)


def encode(value: Any) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    """Return a value as JSON."""
    return msgspec.json.encode(value)


def _nano(amounts: Mapping[str, str | float] | None, path: str) -> dict[str, int]:
    parsed = {}
    for name, text in (amounts or {}).items():
        try:
            parsed[name] = quantity.parse(str(text))
        except InvalidInput as exc:
            raise exc.under(f"{path}.{name}") from exc
    return parsed


def _nano_or_none(amounts: Amounts | None, path: str) -> dict[str, int] | None:
    return None if amounts is None else _nano(amounts, path)


def _requests(resources: _Resources | None, path: str) -> dict[str, int]:
    return _nano(resources.requests if resources else None, f"{path}.resources.requests")


_REQUESTS: LRUCache[bytes, Mapping[str, int]] = LRUCache(maxsize=4096)
"""Effective requests by what they follow from: most pods of a cluster come from few templates."""


def _request(spec: _PodSpec, status: _PodStatus) -> Mapping[str, int]:
    """Return a pod's effective request; computing it takes five times what looking it up does."""
    infeasible = _is_resize_infeasible(status.conditions or [])
    statuses = (status.container_statuses, status.init_container_statuses)
    whole = (spec.resources, spec.overhead, status.allocated_resources, status.resources)
    key = encode((spec.containers, spec.init_containers, *statuses, *whole, infeasible))
    request = _REQUESTS.get(key)
    if request is None:
        request = _REQUESTS[key] = effective_request(_pod_resources(spec, status))
    return request


def _pod_resources(spec: _PodSpec, status: _PodStatus) -> PodResources:
    actuated = status.resources.requests if status.resources else None
    return PodResources(
        containers=_containers(spec.containers, status.container_statuses, "spec.containers"),
        init_containers=_containers(
            spec.init_containers, status.init_container_statuses, "spec.initContainers"
        ),
        pod_level=_requests(spec.resources, "spec"),
        overhead=_nano(spec.overhead, "spec.overhead"),
        pod_allocated=_nano_or_none(status.allocated_resources, "status.allocatedResources"),
        pod_actuated=_nano_or_none(actuated, "status.resources.requests"),
        has_pod_status=status.resources is not None,
        resize_infeasible=_is_resize_infeasible(status.conditions or []),
    )


def _containers(
    containers: list[_Container] | None, statuses: list[_ContainerStatus] | None, path: str
) -> tuple[Container, ...]:
    said = {status.name: status for status in statuses or ()}
    return tuple(
        _container(container, said.get(container.name), f"{path}[{index}]")
        for index, container in enumerate(containers or ())
    )


def _container(container: _Container, status: _ContainerStatus | None, path: str) -> Container:
    requests = _requests(container.resources, path)
    sidecar = container.restart_policy == "Always"
    if status is None:
        return Container(requests=requests, sidecar=sidecar)
    actuated = status.resources.requests if status.resources else None
    return Container(
        requests=requests,
        sidecar=sidecar,
        allocated=_nano_or_none(status.allocated_resources, f"{path}.allocatedResources"),
        actuated=_nano_or_none(actuated, f"{path}.resources.requests"),
    )


def _is_resize_infeasible(conditions: list[_Condition]) -> bool:
    reason = next((c.reason for c in conditions if c.type == "PodResizePending"), "")
    return reason == "Infeasible"


def _claims(annotations: dict[str, str] | None) -> frozenset[str]:
    text = (annotations or {}).get(CLAIMS_ANNOTATION)
    if text is None:
        return frozenset()
    try:
        return frozenset(decode(list[str], text.encode()))
    except InvalidInput:
        return frozenset()  # Not written by us.


def _has_preferences(spec: _PodSpec) -> bool:
    if any(
        c.when_unsatisfiable == "ScheduleAnyway" for c in spec.topology_spread_constraints or ()
    ):
        return True
    affinity = spec.affinity
    return affinity is not None and any(
        terms is not None and terms.preferred_during_scheduling_ignored_during_execution
        for terms in (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
    )
