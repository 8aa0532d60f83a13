"""Reads a pod's effective request, and its health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

import msgspec

from reserver.cluster import quantity
from reserver.cluster.byte_cache import ByteCache, reckoned
from reserver.cluster.pod import PodHealth
from reserver.cluster.quantity import Container, PodResources, effective_request
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import WireStruct, decode_part, encode

Amounts = dict[str, str | int | float]


class Resources(WireStruct, frozen=True):
    """``resources``, with requests only."""

    requests: Amounts | None = None


class ContainerSpec(WireStruct, frozen=True):
    """A container; its ports stay JSON, because few containers have host ports."""

    name: str = ""
    resources: Resources | None = None
    restart_policy: str = ""
    ports: msgspec.Raw = msgspec.Raw()

    @property
    def is_sidecar(self) -> bool:
        """Whether the container, as an init container, runs as long as the pod."""
        return self.restart_policy == "Always"


class ContainerStatus(WireStruct, frozen=True):
    """The status of a container, as the kubelet reports it."""

    name: str
    allocated_resources: Amounts | None = None
    resources: Resources | None = None


class PodCondition(WireStruct, frozen=True):
    """A condition of a pod."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class Requesting(WireStruct, frozen=True):
    """The fields of a pod's spec that determine its request."""

    containers: list[ContainerSpec] | None = None
    init_containers: list[ContainerSpec] | None = None
    resources: Resources | None = None
    overhead: Amounts | None = None


class _Mapped(WireStruct, frozen=True):
    name: str = ""
    quantity: str | int | float | None = None


class _Overhead(WireStruct, frozen=True):
    name: str = ""
    per_pod: str | int | float | None = None
    per_container: str | int | float | None = None


class _ClaimStatus(WireStruct, frozen=True):
    """The node resources that one ResourceClaim takes."""

    containers: list[str] | None = None
    mapping: list[_Mapped] | None = None
    overhead: list[_Overhead] | None = None


class Actuated(WireStruct, frozen=True):
    """The fields of a pod's status that determine its request; the last field is rare."""

    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: Amounts | None = None
    resources: Resources | None = None
    node_allocatable_resource_claim_statuses: msgspec.Raw = msgspec.Raw()


FINISHED = frozenset({"Succeeded", "Failed"})
"""Phases of pods that take no resources of their node any more."""

_MOST_NANO = (2**63 - 1) * quantity.NANO
"""The value that Kubernetes reads for any greater quantity (`ParseQuantity`)."""


def nano(amounts: Mapping[str, str | float] | None, path: str) -> dict[str, int]:
    """Return amounts in nano-units, clamped to 0 and to the largest Quantity.

    The API server refuses negative amounts; a negative amount never adds room here.

    Raises:
        InvalidInput: a quantity is malformed; the error carries its path.
    """
    parsed = {}
    for name, text in (amounts or {}).items():
        try:
            parsed[name] = max(0, min(quantity.parse(str(text)), _MOST_NANO))
        except InvalidInput as exc:
            raise exc.under(f"{path}.{name}") from exc
    return parsed


def _nano_or_none(amounts: Amounts | None, path: str) -> dict[str, int] | None:
    return None if amounts is None else nano(amounts, path)


def _requests(resources: Resources | None, path: str) -> dict[str, int]:
    return nano(resources.requests if resources else None, f"{path}.resources.requests")


_REQUESTS: ByteCache[bytes, Mapping[str, int]] = ByteCache(16 * 2**20)
"""Effective requests by their inputs: most pods of a cluster come from few templates."""


def request(spec: Requesting, status: Actuated) -> Mapping[str, int]:
    """Return a pod's effective request from the cache, in a fifth of the time of computing it."""
    return request_of(requesting(spec, status), spec, status)


def request_of(key: bytes, spec: Requesting, status: Actuated) -> Mapping[str, int]:
    """Return a pod's effective request; `key` is the result of `requesting`."""
    known = _REQUESTS.get(key)
    if known is None:
        known = effective_request(_pod_resources(spec, status))
        _REQUESTS.put(key, known, reckoned(len(key)))
    return known


_RESOURCES = attrgetter("name", "resources", "restart_policy")
_ACTUATED = attrgetter("name", "allocated_resources", "resources")


def requesting(spec: Requesting, status: Actuated) -> bytes:
    """Return all inputs of a pod's request, as a cache key.

    Raises:
        InvalidInput: the inputs are too long to be read (`limits.POD`).
    """
    _check_containers(spec, status)
    specs = spec.containers, spec.init_containers
    containers = [[*map(_RESOURCES, each or ())] for each in specs]
    reported = status.container_statuses, status.init_container_statuses
    statuses = [[*map(_ACTUATED, each or ())] for each in reported]
    whole = (spec.resources, spec.overhead, status.allocated_resources, status.resources)
    infeasible = is_resize_infeasible(status.conditions or ())
    claimed = bytes(status.node_allocatable_resource_claim_statuses)
    found = encode((*containers, *statuses, *whole, infeasible)) + claimed
    if len(found) > POD.request_bytes:
        problem = f"what its containers request takes {len(found)} bytes, which is too much to read"
        raise InvalidInput("spec", problem, f"keep it under {POD.request_bytes}")
    return found


def _check_containers(spec: Requesting, status: Actuated) -> None:
    for path, listed in (
        ("spec.containers", spec.containers),
        ("spec.initContainers", spec.init_containers),
        ("status.containerStatuses", status.container_statuses),
        ("status.initContainerStatuses", status.init_container_statuses),
    ):
        if listed and len(listed) > POD.containers:
            problem = f"{len(listed)} are too many to read"
            raise InvalidInput(path, problem, f"write {POD.containers} at most")


def _pod_resources(spec: Requesting, status: Actuated) -> PodResources:
    actuated = status.resources.requests if status.resources else None
    return PodResources(
        containers=_containers(spec.containers, status.container_statuses, "spec.containers"),
        init_containers=_containers(
            spec.init_containers, status.init_container_statuses, "spec.initContainers"
        ),
        pod_level=_requests(spec.resources, "spec"),
        overhead=nano(spec.overhead, "spec.overhead"),
        claimed=_claimed(bytes(status.node_allocatable_resource_claim_statuses)),
        pod_allocated=_nano_or_none(status.allocated_resources, "status.allocatedResources"),
        pod_actuated=_nano_or_none(actuated, "status.resources.requests"),
        has_pod_status=status.resources is not None,
        resize_infeasible=is_resize_infeasible(status.conditions or ()),
    )


def _containers(
    containers: list[ContainerSpec] | None, statuses: list[ContainerStatus] | None, path: str
) -> tuple[Container, ...]:
    status_of = {status.name: status for status in statuses or ()}
    return tuple(
        _container(container, status_of.get(container.name), f"{path}[{index}]")
        for index, container in enumerate(containers or ())
    )


def _container(container: ContainerSpec, status: ContainerStatus | None, path: str) -> Container:
    requests = _requests(container.resources, path)
    sidecar = container.is_sidecar
    if status is None:
        return Container(requests=requests, sidecar=sidecar)
    actuated = status.resources.requests if status.resources else None
    return Container(
        requests=requests,
        sidecar=sidecar,
        allocated=_nano_or_none(status.allocated_resources, f"{path}.allocatedResources"),
        actuated=_nano_or_none(actuated, f"{path}.resources.requests"),
    )


def _claimed(written: bytes) -> dict[str, int]:
    """Return the node resources that a pod's ResourceClaims take, in nano-units.

    Same sums as `addDRANodeAllocatableClaimResources` (KEP-5517, alpha in Kubernetes 1.37).
    """
    path = "status.nodeAllocatableResourceClaimStatuses"
    claimed: dict[str, int] = {}
    for claim in decode_part(list[_ClaimStatus], written, path) or ():
        users = len(claim.containers or ())
        parts = [(each.name, each.quantity, 1) for each in claim.mapping or ()]
        for each in claim.overhead or ():
            parts += ((each.name, each.per_pod, 1), (each.name, each.per_container, users))
        for name, amount, times in parts:
            claimed[name] = claimed.get(name, 0) + times * nano({name: amount or 0}, path)[name]
    return claimed


def current(status: Actuated, generation: int) -> Actuated:
    """Return a status without conditions about an earlier generation of the spec.

    A resize that the kubelet has not examined yet stands next to the verdict on the previous one.
    For a moment kube-scheduler takes that for infeasible, too; held room has to stay held.
    """
    for each in status.conditions or ():
        if each.type == "PodResizePending" and 0 < each.observed_generation < generation:
            return msgspec.structs.replace(status, conditions=None)
    return status


def health(phase: str, conditions: Iterable[PodCondition]) -> PodHealth:
    """Return the health of a pod as the eviction API judges it."""
    if phase == "Pending" or phase in FINISHED:
        return PodHealth.NOT_RUNNING
    is_ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
    return PodHealth.READY if is_ready else PodHealth.UNREADY


def is_resize_infeasible(conditions: Iterable[PodCondition]) -> bool:
    """Return whether the kubelet has reported a pod's resize as infeasible."""
    for each in conditions:
        if each.type == "PodResizePending":
            return each.reason == "Infeasible"
    return False
