"""Exact Kubernetes quantities, and a pod's effective request, exactly as kube-scheduler counts it.

The rules for requests are in component-helpers/resource/helpers.go (Kubernetes 1.37),
`PodRequests` with `UseStatusResources`: KEP-753 (sidecars), KEP-2837 (pod-level resources),
KEP-1287 and KEP-5419 (in-place resize of containers and of pods), KEP-5517 (node resources of
ResourceClaims). All sums are exact; rounding comes last, as in kube-scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from reserver.errors import InvalidInput

NANO = 10**9
"""Nano-units in one base unit (byte, core, device)."""

MAX = 2**53
"""The largest amount that a reservation may hold over all slots: millicores or base units.

Far beyond any node (8 PiB in bytes), and exact where numbers are doubles (JSON, CEL). Many such
reservations may be on one node, so int64 is too small for their sums (docs/adr/0015).
"""

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_MAX_LENGTH = 64
_MAX_EXPONENT = 40
_NANO_POWER = 9
_TENS: dict[str | None, int] = {
    **{s: 3 * i for i, s in enumerate("num", start=-3)},
    **{s: 3 * i for i, s in enumerate("kMGTPE", start=1)},
}
"""The power of ten of each decimal suffix."""
_TWOS: dict[str | None, int] = {f"{s}i": 10 * i for i, s in enumerate("KMGTPE", start=1)}
"""The power of two of each binary suffix."""
_SHOWN = [
    *((1 << 10 * i, f"{s}i") for i, s in enumerate("KMGTPE", start=1)),
    *((10 ** (3 * i), s) for i, s in enumerate("MGTPE", start=2)),
]
"""Suffixes for display, with their sizes; of equally short forms the first is taken. There is no
suffix for thousands, because amounts also count pods and devices."""

_REMEDY = "write a Kubernetes quantity such as 2, 500m or 4Gi"

_SHARED = 1024
"""Cached mappings: megabytes at most, as a reservation names few resources."""


@lru_cache(maxsize=4096)
def parse(text: str) -> int:
    """Return the quantity in nano-units, rounded away from zero; it may be negative.

    Raises:
        InvalidInput: the text is not a quantity, or its exponent exceeds 40.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise InvalidInput("", f"{shorten(text)!r} is not a quantity", _REMEDY)
    exponent = int(match["exponent"] or 0)
    if abs(exponent) > _MAX_EXPONENT:
        raise InvalidInput("", f"{text!r} has an absurd exponent", _REMEDY)
    whole, _, fine = match["number"].lstrip("+-").partition(".")
    suffix = match["suffix"]
    number = int(whole + fine) << _TWOS.get(suffix, 0)
    power = _NANO_POWER + exponent + _TENS.get(suffix, 0) - len(fine)
    ten: int = 10 ** abs(power)
    nano = number * ten if power >= 0 else -(-number // ten)
    return -nano if text.startswith("-") else nano


def to_unit(resource: str, nano: int) -> int:
    """Return nano-units in the unit of kube-scheduler, rounded up.

    The unit is the millicore for ``cpu`` and the base unit (byte, device, pod) for other resources:
    ``Quantity.MilliValue`` and ``Quantity.Value``.
    """
    return -(-nano // (NANO // 1000 if resource == "cpu" else NANO))


def amount(resource: str, text: str) -> int:
    """Return one quantity of a resource in the unit of `to_unit`."""
    return to_unit(resource, parse(text))


def show(resource: str, value: int) -> str:
    """Return an amount as users write it: ``1500m``, ``4Gi``, ``4G``, ``3``."""
    if resource == "cpu":
        return f"{value}m" if value % 1000 else str(value // 1000)
    exact = [(f"{value // size}{suffix}") for size, suffix in _SHOWN if value % size == 0]
    return min(exact, key=len) if value and exact else str(value)


def shorten(text: str, limit: int = 60) -> str:
    """Return text shortened for a message to at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def shared(amounts: Mapping[str, int]) -> Mapping[str, int]:
    """Return equal amounts from a cache, shared by many callers: never change the result."""
    return _shared(tuple(amounts.items()))


def times(amounts: Mapping[str, int], slots: int) -> Mapping[str, int]:
    """Return the amounts of so many slots, shared by many callers: never change the result."""
    return amounts if slots == 1 else shared({name: n * slots for name, n in amounts.items()})


@lru_cache(_SHARED)
def _shared(amounts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return dict(amounts)


def total(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of amounts by resource, exactly."""
    total: dict[str, int] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def is_less(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Return whether any resource has a smaller amount after than before."""
    return any(amount > after.get(name, 0) for name, amount in before.items())


def exchange(
    by_node: dict[str, dict[str, int]],
    node: str,
    before: Mapping[str, int],
    after: Mapping[str, int],
) -> Mapping[str, int]:
    """Replace amounts on a node by others; return the new totals of the node."""
    totals = dict(by_node.get(node, {}))
    for name, amount in before.items():
        totals[name] -= amount
    for name, amount in after.items():
        totals[name] = totals.get(name, 0) + amount
    for name in before.keys() - after.keys():
        if not totals[name]:
            del totals[name]
    if totals:
        by_node[node] = totals
    else:
        by_node.pop(node, None)
    return totals


Nano = Mapping[str, int]
"""Resource name to amount in nano-units."""

_NOTHING: Nano = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container's requests, in nano-units.

    Attributes:
        sidecar: whether it is an init container with ``restartPolicy: Always``.
        allocated: requests that the kubelet has allocated; None without such a status.
        actuated: requests in force on the node; None without such a status.
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
        claimed: node resources of its ResourceClaims, for example cpu (KEP-5517).
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
    """Return the pod's request: millicores of cpu, base units of other resources, one of pods."""
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
    pod_level = pod.pod_level
    if pod.has_pod_status or pod.pod_actuated is not None:
        spec = _NOTHING if pod.resize_infeasible else pod.pod_level
        pod_level = _maximum((spec, pod.pod_actuated or _NOTHING, pod.pod_allocated or _NOTHING))
    return {**total, **{name: nano for name, nano in pod_level.items() if _is_pod_level(name)}}


def _is_pod_level(resource: str) -> bool:
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _has_status(pod: PodResources) -> bool:
    return pod.resize_infeasible or any(
        c.allocated is not None or c.actuated is not None
        for c in (*pod.containers, *pod.init_containers)
    )


def _spec(container: Container, *, infeasible: bool) -> Nano:  # noqa: ARG001 - same signature as others
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
    """Return the larger of the sum of running containers and each init container's peak."""
    running = [view(c, infeasible=pod.resize_infeasible) for c in pod.containers]
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in pod.init_containers:
        for name, nano in view(container, infeasible=pod.resize_infeasible).items():
            # A resource that the container does not request: the final sum of sidecars is larger.
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
