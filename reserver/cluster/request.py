"""A pod's effective request, exactly as kube-scheduler counts it.

The rules are those of component-helpers/resource/helpers.go (Kubernetes 1.37), `PodRequests` with
`UseStatusResources`: KEP-753 (sidecars), KEP-2837 (pod-level resources), KEP-1287 and KEP-5419
(in-place resize of containers and of pods), KEP-5517 (what ResourceClaims take of a node). All sums
are exact; rounding comes last, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reserver.cluster.quantity import to_unit

Nano = Mapping[str, int]
"""Resource name to amount in nano-units."""

_NOTHING: Nano = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container's requests, in nano-units.

    Attributes:
        sidecar: whether it is an init container with ``restartPolicy: Always``.
        allocated: what the kubelet has allocated to it; None if the status does not say.
        actuated: the requests in force on the node; None if the status does not say.
    """

    requests: Nano = field(default_factory=dict)
    sidecar: bool = False
    allocated: Nano | None = None
    actuated: Nano | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResources:
    """The inputs of a pod's effective request, in nano-units.

    Attributes:
        init_containers: init containers and sidecars, in order.
        pod_level: ``spec.resources.requests``.
        overhead: ``spec.overhead``.
        claimed: what its ResourceClaims take of what nodes offer, cpu say (KEP-5517).
        pod_allocated: ``status.allocatedResources``.
        pod_actuated: ``status.resources.requests``.
        has_pod_status: ``status.resources`` exists.
        resize_infeasible: the condition PodResizePending has the reason Infeasible.
    """

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    pod_level: Nano = field(default_factory=dict)
    overhead: Nano = field(default_factory=dict)
    claimed: Nano = field(default_factory=dict)
    pod_allocated: Nano | None = None
    pod_actuated: Nano | None = None
    has_pod_status: bool = False
    resize_infeasible: bool = False


def effective_request(pod: PodResources) -> dict[str, int]:
    """Return what the pod takes from a node: millicores of cpu, base units of all else, one pod."""
    total = _pod_level_over(pod, _containers_request(pod))
    total = _sum((total, pod.overhead))
    return {name: to_unit(name, nano) for name, nano in total.items() if nano} | {"pods": 1}


def _containers_request(pod: PodResources) -> Nano:
    claimed = pod.claimed
    spec = _NOTHING if pod.resize_infeasible else _sum((_aggregate(pod, _spec), claimed))
    if pod.pod_allocated is not None and pod.pod_actuated is not None:
        # The kubelet's own sums over all containers and claims (KEP-5419).
        return _maximum((spec, pod.pod_actuated, pod.pod_allocated))
    if not _has_status(pod):
        return spec
    allocated = _sum((_aggregate(pod, _allocated), claimed))
    return _maximum((spec, _aggregate(pod, _actuated), allocated))


def _pod_level_over(pod: PodResources, total: Nano) -> Nano:
    if not any(map(_is_pod_level, pod.pod_level)):
        return total
    wanted = pod.pod_level
    if pod.has_pod_status or pod.pod_actuated is not None:
        spec = _NOTHING if pod.resize_infeasible else pod.pod_level
        wanted = _maximum((spec, pod.pod_actuated or _NOTHING, pod.pod_allocated or _NOTHING))
    return {**total, **{name: nano for name, nano in wanted.items() if _is_pod_level(name)}}


def _is_pod_level(resource: str) -> bool:
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _has_status(pod: PodResources) -> bool:
    return pod.resize_infeasible or any(
        c.allocated is not None or c.actuated is not None
        for c in (*pod.containers, *pod.init_containers)
    )


def _spec(container: Container, *, infeasible: bool) -> Nano:  # noqa: ARG001 - one shape for the three views
    return container.requests


def _allocated(container: Container, *, infeasible: bool) -> Nano:
    if container.allocated is not None:
        return container.allocated
    return _NOTHING if infeasible else container.requests


def _actuated(container: Container, *, infeasible: bool) -> Nano:
    if container.actuated is not None:
        return container.actuated
    return _allocated(container, infeasible=infeasible)


def _aggregate(pod: PodResources, view: Callable[..., Nano]) -> Nano:
    """Return the larger of what runs together and what each init container needs in its turn."""
    running = [view(c, infeasible=pod.resize_infeasible) for c in pod.containers]
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in pod.init_containers:
        for name, nano in view(container, infeasible=pod.resize_infeasible).items():
            # For resources that it does not name, the sidecars' final sum is the larger one.
            total = sidecars.get(name, 0) + nano
            starting[name] = max(total, starting.get(name, total))
            if container.sidecar:
                sidecars[name] = total
    return _maximum((_sum((*running, sidecars)), starting))


def _sum(parts: Iterable[Nano]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, nano in part.items():
            total[name] = total.get(name, 0) + nano
    return total


def _maximum(parts: Iterable[Nano]) -> dict[str, int]:
    largest: dict[str, int] = {}
    for part in parts:
        for name, nano in part.items():
            largest[name] = max(nano, largest.get(name, nano))
    return largest
