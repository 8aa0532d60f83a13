"""One reservation as a mapping: the spec of docs/reservations.md in JSON or YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
from reserver.k8s.objects.times import parse_duration, parse_moment
from reserver.reservations import owner
from reserver.reservations.entry import identified
from reserver.reservations.enums import Policy, StoreKind
from reserver.reservations.placement import ANYWHERE, Parts, Placement, clipped
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import owner_codec, placement_codec, slot_rules
from reserver.stores.codec.decode_errors import misfit
from reserver.stores.codec.owner_codec import OwnerEntry, Owners
from reserver.stores.codec.placement_codec import PartObject
from reserver.stores.codec.slot_rules import LendFields

DEFAULT_TTL_S = 24 * 3600.0
"""How long a reservation lives that does not say so, in seconds."""

MOST_DRIFT_S = 30
"""Two readers of a ttl may compute expiries this many seconds apart (docs/adr/0001)."""

MAX_TTL_S = 100 * 365 * DEFAULT_TTL_S
_ORIGIN = re.compile(
    r"[-a-z0-9]{1,63}(/[-._a-zA-Z0-9]{1,253}){1,2}(\[[-./a-z0-9]{1,317}\])?(#[-a-zA-Z0-9]{1,64})?"
)


class SpecFields(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A reservation's spec as it is written."""

    owners: list[OwnerEntry]
    resources: dict[str, str | int | float]
    slots: int = 1
    node: str = ""
    placement: Any = None
    starts_at: str | None = None
    expires_at: str | None = None
    ttl: str | int | None = None
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
    author: str = ""  # The user whose gRPC call wrote it; gRPC shows it beside the spec.
    request_id: str = ""  # The id of the gRPC request that wrote it; nothing here reads it.
    origin: str = ""


class EntrySpec(SpecFields):
    """A spec in a ConfigMap, where there is no status beside it."""

    placements: list[PartObject] = []  # Where Reserver placed it; only Reserver writes it.


def read(
    document: Any,  # noqa: ANN401 - whatever YAML can hold
    ref: Ref,
    seen_at: float,
    limits: SpecLimits = HOME,
    nobody: Sequence[str] = (),
) -> Reservation:
    """Return the reservation that a mapping describes.

    Args:
        document: the parsed value of a data key.
        ref: where it is written; the key must be a valid object name.
        seen_at: unix seconds from which a ``ttl`` counts: when Reserver first saw it.
        limits: what it may say there (`limits_at`).
        nobody: the namespaces of further owners, as whom nobody may claim.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its path.
    """
    names.check_subdomain(ref.key, "", "a reservation's name")
    spec = convert(document, EntrySpec if ref.kind is StoreKind.CONFIGMAP else SpecFields)
    if spec.node:
        names.check_subdomain(spec.node, "node", "a node's name")
    slots, refill = slot_rules.slots(spec, limits), slot_rules.refill_up_to(spec, limits)
    starts_at, expires_at = _window(spec, seen_at)
    owners = owner_codec.read(spec.owners, ref.namespace, limits, nobody)
    reservation = identified(
        Reservation(
            ref=ref,
            digest="",
            node=spec.node,
            owners=tuple(owners.named),
            rules=owners.rules,
            resources=_resources(spec, limits),
            slots=slots,
            starts_at=starts_at,
            expires_at=expires_at,
            policy=spec.policy,
            yields_above=slot_rules.yields_above(spec.priority, preemptible=spec.preemptible),
            reusable=spec.reusable or spec.refill,
            refill_up_to=refill,
            release_if_idle=slot_rules.release_if_idle(spec),
            lends_below=slot_rules.lends_below(spec.lend, preemptible=spec.preemptible),
            placement=_placement(spec, owners, limits),
            placed=_placed(spec, refill or slots),
            origin=_origin(spec.origin),
            drift=_drift(spec) if ref.kind is StoreKind.CONFIGMAP else 0,
            is_retained=slot_rules.retained(spec),
            description=check_length(spec.description, "description", MOST_DESCRIPTION),
            author=check_length(spec.author, "author", MOST_AUTHOR),
        )
    )
    _check_neighbours(reservation)
    return reservation


def convert(document: Any, kind: type[SpecFields] = SpecFields) -> SpecFields:  # noqa: ANN401 - whatever YAML can hold
    """Convert a mapping to a spec, checking only its shape.

    Raises:
        InvalidInput: it is not of that shape; the error carries the path.
    """
    try:
        return msgspec.convert(document, kind, strict=True)
    except msgspec.ValidationError as exc:
        raise misfit(exc, document, kind) from exc


def needs_stamp(document: Any) -> bool:  # noqa: ANN401 - whatever YAML can hold
    """Return whether a mapping has a ttl, given or by default, but no ``expiresAt``."""
    if not isinstance(document, dict) or document.get("expiresAt") is not None:
        return False
    return str(document.get("ttl")) != "0"


def check_set(reservations: Iterable[Reservation]) -> None:
    """Refuse a set with too many slots that must be judged one by one.

    Raises:
        InvalidInput: at ``reservations``.
    """
    slots = sum(each.slots for each in reservations if _is_about_neighbours(each))
    what = "slots with a placement that is about neighbours"
    check_number(slots, "reservations", SET_SLOTS_BESIDE_EACH_OTHER, what)


def _placement(spec: SpecFields, owners: Owners, limits: SpecLimits) -> Placement:
    if spec.placement is None:
        return ANYWHERE
    if spec.node:
        remedy = "remove it, or leave the choice to Reserver: remove node"
        raise InvalidInput("placement", "cannot be set together with node", remedy)
    with under("placement"):
        home = owner.home(owners.named, owners.rules)
        return placement_codec.read(spec.placement, home, limits)


def _placed(spec: SpecFields, slots: int) -> Parts:
    if spec.node or not isinstance(spec, EntrySpec):
        return ()  # It may have been placed before somebody set the node.
    with under("placements"):
        return clipped(placement_codec.read_parts(spec.placements), slots)


def _window(spec: SpecFields, seen_at: float) -> tuple[float | None, float | None]:
    """Return when it begins and when it expires."""
    starts_at, expires_at = _moment(spec.starts_at, "startsAt"), _expiry(spec, seen_at)
    if starts_at is not None and expires_at is not None and starts_at >= expires_at:
        raise InvalidInput("startsAt", "is not before expiresAt", "let it start before it expires")
    return starts_at, expires_at


def _check_neighbours(reservation: Reservation) -> None:
    if reservation.slots > SLOTS_BESIDE_EACH_OTHER and _is_about_neighbours(reservation):
        problem = f"{reservation.slots} are too many with a placement that is about neighbours"
        remedy = f"write {SLOTS_BESIDE_EACH_OTHER} at most, or several reservations"
        raise InvalidInput("slots", problem, remedy)


def _is_about_neighbours(reservation: Reservation) -> bool:
    return reservation.placement.constraints.are_about_neighbours


def _origin(text: str) -> str:
    if text and not _ORIGIN.fullmatch(text):
        problem = f"{quantity.shorten(text)!r} is not a ref"
        remedy = "leave it to `reserver migrate`: NAMESPACE/CONFIGMAP/KEY or NAMESPACE/NAME#UID"
        raise InvalidInput("origin", problem, remedy)
    return text


def _resources(spec: SpecFields, limits: SpecLimits) -> dict[str, int]:
    written, slots = spec.resources, spec.slots
    check_count(written, "resources", limits.resources)
    # Each owner takes one of the node's pods, whether or not the spec says so.
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
        # What Reserver writes itself, as the seat of a pod, holds what it has to.
        text = str(written.get("memory", ""))
        check_memory(resources.get("memory", 0), text, "resources.memory", limits.least_memory)
    if not any(amount for name, amount in resources.items() if name in written):
        raise InvalidInput("resources", "holds nothing", "write what one slot holds, e.g. cpu: 2")
    return {name: amount for name, amount in resources.items() if amount}


def _drift(spec: SpecFields) -> int:
    """Return by how many seconds another Reserver may compute another expiry of an entry.

    It may see the entry a moment later, or start after the first one has ended.
    """
    if spec.ttl is None:
        return 0 if spec.expires_at is not None else MOST_DRIFT_S
    try:
        ttl = parse_duration(str(spec.ttl))
    except InvalidInput:
        return 0  # It has expiresAt besides, which counts.
    return min(MOST_DRIFT_S, max(1, int(ttl / 2))) if ttl else 0


def _moment(text: str | None, path: str) -> float | None:
    if text is None:
        return None
    with under(path):
        return parse_moment(text)


def _expiry(spec: SpecFields, seen_at: float) -> float | None:
    if spec.expires_at is not None:
        return _moment(spec.expires_at, "expiresAt")
    if spec.ttl is None:
        return float(int(seen_at + DEFAULT_TTL_S))
    with under("ttl"):
        ttl = parse_duration(str(spec.ttl))
    if ttl > MAX_TTL_S:
        raise InvalidInput("ttl", "is more than a hundred years", "write 0 to hold for ever")
    # Whole seconds, as `edits.complete` writes it back.
    return float(int(seen_at + ttl)) if ttl else None
