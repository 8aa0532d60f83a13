"""Parses the fields for slots: their number, refilling, retention, lending and preemption.

With ``nodes`` in a spec, a slot is a whole node instead of resources (docs/adr/0076).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from reserver.cluster import quantity
from reserver.cluster.node import NODES
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.limits import (
    LEAST_IDLE_S,
    MOST_CLAIMS_RECORDED,
    MOST_IDLE_S,
    MOST_NODES,
    MOST_REFILLED,
    SpecLimits,
)
from reserver.k8s.objects.times import parse_duration
from reserver.reservations.placement import Placement
from reserver.stores.codec import placement_codec
from reserver.stores.codec.owner_codec import Owners

LEAST_PRIORITY = -(2**31)
MOST_PRIORITY = 1_000_000_000
"""HighestUserDefinablePriority in pkg/apis/scheduling/types.go."""


WHOLE: Mapping[str, int] = {NODES: 1}
"""The resources of a slot that is a whole node."""

_INSTEAD = {
    "resources": "remove it: the whole nodes are held",
    "slots": "remove it, nodes.count says how many",
    "node": "remove it, or select the node by its label kubernetes.io/hostname",
    "refill": "remove it: a whole node stays held, whatever its owners do",
    "reusable": "remove it: a whole node stays held, whatever its owners do",
    "lend": "remove it: whole nodes are for their owners alone",
    "preemptible": "remove it: whole nodes are for their owners alone",
}
"""Fields that cannot be set together with ``nodes``, and their remedies."""

_IN_PLACEMENT = {
    "nodeSelector": "write it as nodes.selector",
    "topologySpreadConstraints": "write a reservation for each domain",
    "strategy": "remove it: whole nodes are equal",
}


class NodesFields(msgspec.Struct, forbid_unknown_fields=True):
    """The field ``nodes``: whole nodes."""

    count: int
    selector: dict[str, str] = {}


class LendFields(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The field ``lend``: the pods that may borrow."""

    below_priority: int


class SlotFields(Protocol):
    """The fields of a spec for its slots or its whole nodes."""

    node: str
    nodes: NodesFields | None
    placement: Any
    slots: int
    refill: bool
    refill_up_to: int | None
    retain: bool
    release_if_idle: str | None


def slots(spec: SlotFields, limits: SpecLimits) -> int:
    """Return the number of slots.

    Raises:
        InvalidInput: the number is out of range.
    """
    return _within(spec.slots, 1, limits.slots, "slots")


def refill_up_to(spec: SlotFields, limits: SpecLimits) -> int:
    """Return the most slots, claimed and free, of a refilled reservation; 0 without refilling.

    Raises:
        InvalidInput: refillUpTo without refill or out of range, or refill with a node.
    """
    if not spec.refill:
        if spec.refill_up_to is not None:
            remedy = "remove it, or replace claimed slots: refill: true"
            raise InvalidInput("refillUpTo", "has no effect without refill", remedy)
        return 0
    if spec.node:
        remedy = "remove node; placement.nodeSelector says where slots may be"
        raise InvalidInput("refill", "cannot be set together with node", remedy)
    if spec.refill_up_to is None:
        return refilled_by_default(spec.slots)
    return _within(spec.refill_up_to, spec.slots, limits.slots, "refillUpTo")


def refilled_by_default(slots: int) -> int:
    """Return the default of refillUpTo."""
    return max(slots, MOST_REFILLED)


def retained(spec: SlotFields) -> bool:
    """Return whether the entry is kept after the reservation's end.

    Raises:
        InvalidInput: the reservation has too many slots to be retained.
    """
    if spec.retain and spec.slots > MOST_CLAIMS_RECORDED:
        remedy = (
            f"write {MOST_CLAIMS_RECORDED} at most: Reserver keeps no more claims over a restart"
        )
        raise InvalidInput("slots", f"{spec.slots} are too many to be retained", remedy)
    return spec.retain


def release_if_idle(spec: SlotFields) -> float:
    """Return the idle seconds after which the reservation is released; 0 for never.

    Raises:
        InvalidInput: the field is not a duration, or out of range.
    """
    if spec.release_if_idle is None:
        return 0.0
    with under("releaseIfIdle"):
        wait = parse_duration(spec.release_if_idle)
        if not LEAST_IDLE_S <= wait <= MOST_IDLE_S:
            problem = f"{quantity.shorten(spec.release_if_idle)} is out of range"
            raise InvalidInput("", problem, "write 1m to 8760h, or remove it")
    return wait


def lends_below(lend: LendFields | None, *, preemptible: bool) -> int | None:
    """Return the priority below which pods may borrow a hold; None if it is not lent."""
    if lend is None:
        return None
    if preemptible:
        remedy = "remove one of the two: pods take the room, or borrow it"
        raise InvalidInput("lend", "cannot be set together with preemptible", remedy)
    return _priority(lend.below_priority, "lend.belowPriority")


def yields_above(priority: int | None, *, preemptible: bool) -> int | None:
    """Return the priority above which pods may take a hold; None if no pod may."""
    least = _priority(priority or 0, "priority")
    if priority is not None and not preemptible:
        remedy = "remove it, or let pods of higher priority take the hold: preemptible: true"
        raise InvalidInput("priority", "has no effect without preemptible", remedy)
    return least if preemptible else None


def _priority(priority: int, path: str) -> int:
    if not LEAST_PRIORITY <= priority <= MOST_PRIORITY:
        problem = f"{quantity.shorten(str(priority))} is out of range"
        remedy = f"write {LEAST_PRIORITY} to {MOST_PRIORITY}, as in a PriorityClass"
        raise InvalidInput(path, problem, remedy)
    return priority


def _within(number: int, least: int, most: int, path: str) -> int:
    if not least <= number <= most:
        problem = f"{quantity.shorten(str(number))} is out of range"
        raise InvalidInput(path, problem, f"write {least} to {most}")
    return number


def node_count(spec: SlotFields, nodes: NodesFields) -> int:
    """Return the number of whole nodes of a spec.

    Raises:
        InvalidInput: the number is out of range, or a field excludes whole nodes.
    """
    for field, remedy in _INSTEAD.items():
        value = getattr(spec, field)
        if value and not (field == "slots" and value == 1):
            raise InvalidInput(field, "cannot be set together with nodes", remedy)
    if not 1 <= nodes.count <= MOST_NODES:
        problem = f"{shorten(str(nodes.count))} is out of range"
        raise InvalidInput("nodes.count", problem, f"write 1 to {MOST_NODES}")
    return nodes.count


def node_placement(
    spec: SlotFields, nodes: NodesFields, home: str, limits: SpecLimits
) -> Placement:
    """Return the placement of whole nodes; `home` is the namespace of the owners.

    Raises:
        InvalidInput: some field is invalid, or has no effect on whole nodes.
    """
    given = spec.placement if isinstance(spec.placement, dict) else {}
    for field in _IN_PLACEMENT.keys() & given.keys():
        problem = "cannot be set together with nodes"
        raise InvalidInput(f"placement.{field}", problem, _IN_PLACEMENT[field])
    if spec.placement is not None:
        _check_neighbours(_read(spec.placement, "placement", home, limits))
    _read({"nodeSelector": nodes.selector}, "nodes", home, limits)
    return placement_codec.read({**given, "nodeSelector": nodes.selector}, home, limits)


def check_node_owners(owners: Owners) -> None:
    """Refuse owners by pod name: such a reservation ends when the pod is bound.

    Raises:
        InvalidInput: an owner is a pod by its name.
    """
    if owners.named:
        problem = f"{shorten(str(min(owners.named)))} is a pod by its name"
        remedy = "name its controller or its labels: whole nodes are for any number of pods"
        raise InvalidInput("owners", problem, remedy)


def _check_neighbours(read: Placement) -> None:
    if read.constraints.are_about_neighbours:
        problem = "cannot be set together with nodes"
        remedy = "remove podAffinity and podAntiAffinity: no other pods are there"
        raise InvalidInput("placement.affinity", problem, remedy)


def _read(document: object, path: str, home: str, limits: SpecLimits) -> Placement:
    try:
        return placement_codec.read(document, home, limits)
    except InvalidInput as exc:
        where = exc.path.replace("nodeSelector", "selector", 1) if path == "nodes" else exc.path
        raise InvalidInput(where, exc.problem, exc.remedy).under(path) from exc
