"""Parses the spec of a reservation (docs/reservations.md) from a mapping of JSON or YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from reserver.cluster import quantity
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import (
    HOME,
    MOST_AUTHOR,
    MOST_DESCRIPTION,
    SET_SLOTS_BESIDE_EACH_OTHER,
    SLOTS_BESIDE_EACH_OTHER,
    SpecLimits,
    check_amount,
    check_count,
    check_length,
    check_memory,
    check_number,
)
from reserver.reservations import owner
from reserver.reservations.entry import identified
from reserver.reservations.enums import Policy, StoreKind
from reserver.reservations.placement import ANYWHERE, Parts, Placement, clipped
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import lifetime_codec, owner_codec, placement_codec, slot_rules
from reserver.stores.codec.decode_errors import misfit
from reserver.stores.codec.lifetime_codec import LifetimeFields
from reserver.stores.codec.owner_codec import OwnerEntry, Owners
from reserver.stores.codec.placement_codec import StrictPart
from reserver.stores.codec.slot_rules import LendFields, NodesFields

_ORIGIN = re.compile(
    r"[-a-z0-9]{1,63}(/[-._a-zA-Z0-9]{1,253}){1,2}(\[[-./a-z0-9]{1,317}\])?(#[-a-zA-Z0-9]{1,64})?"
)


class SpecFields(LifetimeFields, kw_only=True):
    """The written form of a reservation's spec."""

    owners: list[OwnerEntry]
    resources: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    slots: int = 1
    nodes: NodesFields | None = None
    node: str = ""
    placement: Any = None
    policy: Policy = Policy.PREFER
    preemptible: bool = False
    priority: int | None = None
    reusable: bool = False
    refill: bool = False
    refill_up_to: int | None = None
    release_if_idle: str | None = None
    lend: LendFields | None = None
    retain: bool = False
    description: str = ""
    author: str = ""  # The user of the gRPC call that wrote it; the gRPC API returns it.
    request_id: str = ""  # The id of the gRPC request that wrote it; not read here.
    origin: str = ""


class EntrySpec(SpecFields, kw_only=True):
    """A spec in a ConfigMap, which has no status."""

    # The nodes chosen by Reserver, which alone writes this field.
    placements: list[StrictPart] = msgspec.field(default_factory=list)


def read(
    document: Any,  # noqa: ANN401 - whatever YAML can hold
    ref: Ref,
    seen_at: float,
    limits: SpecLimits = HOME,
    closed: Sequence[str] = (),
) -> Reservation:
    """Return the reservation of a mapping.

    Args:
        document: the parsed value of a data key.
        ref: the ref of the reservation; its key must be a valid object name.
        seen_at: start of a ``ttl``, in unix seconds: the time at which Reserver first saw it.
        limits: the bounds on its fields (`limits_at`).
        closed: the namespaces of further owners that no pod may claim as (`newer_fields`).

    Raises:
        InvalidInput: some field is not acceptable; the error carries its path.
    """
    names.check_subdomain(ref.key, "", "a reservation's name")
    spec = convert(document, EntrySpec if ref.kind is StoreKind.CONFIGMAP else SpecFields)
    slots, refill = _slots(spec, limits), slot_rules.refill_up_to(spec, limits)
    lifetime = lifetime_codec.read(spec, seen_at)
    owners = owner_codec.read(spec.owners, ref.namespace, limits, closed)
    reservation = identified(
        Reservation(
            ref=ref,
            digest="",
            node=_node(spec),
            owners=tuple(owners.named),
            rules=owners.rules,
            resources=_resources(spec, limits),
            slots=slots,
            starts_at=lifetime.starts_at,
            expires_at=lifetime.expires_at,
            recurrence=lifetime.recurrence,
            policy=spec.policy,
            yields_above=slot_rules.yields_above(spec.priority, preemptible=spec.preemptible),
            reusable=spec.reusable or spec.refill or spec.nodes is not None,
            refill_up_to=refill,
            release_if_idle=slot_rules.release_if_idle(spec),
            lends_below=slot_rules.lends_below(spec.lend, preemptible=spec.preemptible),
            placement=_placement(spec, owners, limits),
            placed=_placed(spec, refill or slots),
            origin=_origin(spec.origin),
            drift=lifetime.drift if ref.kind is StoreKind.CONFIGMAP else 0,
            is_retained=slot_rules.retained(spec),
            description=check_length(spec.description, "description", MOST_DESCRIPTION),
            author=check_length(spec.author, "author", MOST_AUTHOR),
        )
    )
    return _checked(reservation)


def convert(document: Any, kind: type[SpecFields] = SpecFields) -> SpecFields:  # noqa: ANN401 - whatever YAML can hold
    """Convert a mapping to a spec, checking only names and types of fields.

    Raises:
        InvalidInput: a name or a type is wrong; the error carries the path.
    """
    try:
        return msgspec.convert(document, kind, strict=True)
    except msgspec.ValidationError as exc:
        raise misfit(exc, document, kind) from exc


def check_set(reservations: Iterable[Reservation]) -> None:
    """Refuse a set with too many slots that must be placed one by one.

    Raises:
        InvalidInput: at ``reservations``.
    """
    slots = sum(each.slots for each in reservations if _is_about_neighbours(each))
    what = "slots with a placement by pod affinity or topology spread"
    check_number(slots, "reservations", SET_SLOTS_BESIDE_EACH_OTHER, what)


def _node(spec: SpecFields) -> str:
    if spec.node:
        names.check_subdomain(spec.node, "node", "a node's name")
    return spec.node


def _slots(spec: SpecFields, limits: SpecLimits) -> int:
    if spec.nodes is not None:
        return slot_rules.node_count(spec, spec.nodes)
    return slot_rules.slots(spec, limits)


def _placement(spec: SpecFields, owners: Owners, limits: SpecLimits) -> Placement:
    if spec.nodes is None and spec.placement is None:
        return ANYWHERE
    home = owner.home(owners.named, owners.rules)
    if spec.nodes is not None:
        slot_rules.check_node_owners(owners)
        return slot_rules.node_placement(spec, spec.nodes, home, limits)
    if spec.node:
        remedy = "remove it, or leave the choice to Reserver: remove node"
        raise InvalidInput("placement", "cannot be set together with node", remedy)
    with under("placement"):
        return placement_codec.read(spec.placement, home, limits)


def _placed(spec: SpecFields, slots: int) -> Parts:
    if spec.node or not isinstance(spec, EntrySpec):
        return ()  # Reserver may have placed it before the node was set.
    with under("placements"):
        return clipped(placement_codec.read_parts(spec.placements), slots)


def _checked(reservation: Reservation) -> Reservation:
    if reservation.slots > SLOTS_BESIDE_EACH_OTHER and _is_about_neighbours(reservation):
        problem = (
            f"{reservation.slots} are too many with a placement by pod affinity or topology spread"
        )
        remedy = f"write {SLOTS_BESIDE_EACH_OTHER} at most, or several reservations"
        raise InvalidInput("slots", problem, remedy)
    return reservation


def _is_about_neighbours(reservation: Reservation) -> bool:
    return reservation.placement.constraints.are_about_neighbours


def _origin(text: str) -> str:
    if text and not _ORIGIN.fullmatch(text):
        problem = f"{quantity.shorten(text)!r} is not a ref"
        remedy = "leave it to `reserver migrate`: NAMESPACE/CONFIGMAP/KEY or NAMESPACE/NAME#UID"
        raise InvalidInput("origin", problem, remedy)
    return text


def _resources(spec: SpecFields, limits: SpecLimits) -> Mapping[str, int]:
    if spec.nodes is not None:
        return slot_rules.WHOLE
    written, slots = spec.resources, spec.slots
    check_count(written, "resources", limits.resources)
    # Each owner uses one of the node's pods, even if the spec does not list pods.
    resources = {"pods": 1}
    for name, text in written.items():
        path = f"resources.{quantity.shorten(name)}"
        if not names.is_resource(name):
            remedy = "write cpu, memory, pods, ephemeral-storage, hugepages-SIZE or DOMAIN/NAME"
            raise InvalidInput(path, "is not a resource that a node can offer", remedy)
        with under(path):
            amount = quantity.amount(name, str(text))
        resources[name] = check_amount(amount, str(text), path, slots)
    if not spec.origin and not any(each.replaces for each in spec.owners):
        # Reserver's own reservations, such as seats, hold exactly the pod's request.
        text = str(written.get("memory", ""))
        check_memory(resources.get("memory", 0), text, "resources.memory", limits.least_memory)
    if not any(amount for name, amount in resources.items() if name in written):
        raise InvalidInput("resources", "holds nothing", "write what one slot holds, e.g. cpu: 2")
    return {name: amount for name, amount in resources.items() if amount}
