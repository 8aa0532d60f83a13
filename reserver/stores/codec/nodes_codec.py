"""``nodes`` of a spec: whole nodes instead of slots of some resources (docs/adr/0076)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from reserver.cluster.node import NODES
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_NODES, SpecLimits
from reserver.reservations.placement import Placement
from reserver.stores.codec import placement_codec
from reserver.stores.codec.owner_codec import Owners

WHOLE: Mapping[str, int] = {NODES: 1}
"""What a slot holds that is a whole node."""

_INSTEAD = {
    "resources": "remove it: all that the nodes have is held",
    "slots": "remove it, nodes.count says how many",
    "node": "remove it, or select the node by its label kubernetes.io/hostname",
    "refill": "remove it: a whole node stays held, whatever its owners do",
    "reusable": "remove it: a whole node stays held, whatever its owners do",
    "lend": "remove it: whole nodes are for their owners alone",
    "preemptible": "remove it: whole nodes are for their owners alone",
}
"""What cannot be set together with ``nodes``, and what to do."""

_IN_PLACEMENT = {
    "nodeSelector": "write it as nodes.selector",
    "topologySpreadConstraints": "write a reservation for each domain",
    "strategy": "remove it: whole nodes are equal",
}


class NodesFields(msgspec.Struct, forbid_unknown_fields=True):
    """Whole nodes, as they are written."""

    count: int
    selector: dict[str, str] = {}


class NodesSpec(Protocol):
    """The fields of a spec that matter to whole nodes."""

    nodes: NodesFields | None
    slots: int
    placement: Any


def count(spec: NodesSpec, nodes: NodesFields) -> int:
    """Return how many nodes a spec holds.

    Raises:
        InvalidInput: they are too many, or none, or it says what does not go with whole nodes.
    """
    for field, remedy in _INSTEAD.items():
        value = getattr(spec, field)
        if value and not (field == "slots" and value == 1):
            raise InvalidInput(field, "cannot be set together with nodes", remedy)
    if not 1 <= nodes.count <= MOST_NODES:
        problem = f"{shorten(str(nodes.count))} is out of range"
        raise InvalidInput("nodes.count", problem, f"write 1 to {MOST_NODES}")
    return nodes.count


def placement(spec: NodesSpec, nodes: NodesFields, home: str, limits: SpecLimits) -> Placement:
    """Return where the nodes may be; `home` is the namespace of the owners.

    Raises:
        InvalidInput: some field is invalid, or has no effect on whole nodes.
    """
    said = spec.placement if isinstance(spec.placement, dict) else {}
    for field in _IN_PLACEMENT.keys() & said.keys():
        problem = "cannot be set together with nodes"
        raise InvalidInput(f"placement.{field}", problem, _IN_PLACEMENT[field])
    if spec.placement is not None:
        _check_neighbours(_read(spec.placement, "placement", home, limits))
    _read({"nodeSelector": nodes.selector}, "nodes", home, limits)
    return placement_codec.read({**said, "nodeSelector": nodes.selector}, home, limits)


def check_owners(owners: Owners) -> None:
    """Refuse owners by name: a reservation that names a pod ends when it lands.

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
