"""Rewrites the spec of a reservation for another store, and for the history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import limits_at
from reserver.k8s.objects.objects import encode
from reserver.reservations.enums import Outcome, StoreKind
from reserver.reservations.outcome import Ending
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document, placement_codec, spec_codec

_PARTS = ("pod", "controller", "selector")
_MOST_NAME = 253


def name_for(reservation: Reservation) -> str:
    """Return the name of a reservation as an object or data key of its own."""
    item = reservation.ref.item
    if not item:
        return reservation.ref.key
    pod = item.partition("/")[2][: _MOST_NAME - 1 - len(reservation.digest)]
    return f"{pod.rstrip('-.')}-{reservation.digest}"


def rewritten(
    reservation: Reservation, document: dict[str, Any], ref: Ref, home: str
) -> dict[str, Any]:
    """Return the spec of a reservation for another ref.

    Args:
        reservation: the reservation as read.
        document: its spec as written; ignored for an item of a list.
        ref: the ref to write it to.
        home: Reserver's own namespace (`limits_at`).

    Raises:
        InvalidInput: the spec would be another reservation at that ref, or has unknown owners.
    """
    spec = _item(reservation) if reservation.ref.item else _spec(reservation, document)
    spec |= {"origin": reservation.origin or str(reservation.ref)}
    # A Reservation object has its placements in its status.
    spec.pop("placements", None)
    if ref.kind is StoreKind.CONFIGMAP and reservation.placed:
        spec["placements"] = placement_codec.show_parts(reservation.placed)
    if reservation.expires_at is None:
        spec["ttl"] = 0
    else:
        spec["expiresAt"] = _moment(reservation.expires_at)
    there = spec_codec.read(spec, ref, 0.0, limits_at(ref, home))
    if there.edition != reservation.edition:
        problem = "would be another reservation in the new store"
        raise InvalidInput("", problem, "remove it here and write it there by hand")
    return spec


def _item(reservation: Reservation) -> dict[str, Any]:
    (owner,) = reservation.owners
    amounts = reservation.resources
    return {
        "owners": [{"pod": {"name": owner.name, "namespace": owner.namespace}}],
        "node": reservation.node,
        "resources": {
            name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()
        },
    }


def _spec(reservation: Reservation, document: dict[str, Any]) -> dict[str, Any]:
    fields = {field: value for field, value in document.items() if value is not None}
    fields.pop("ttl", None)
    owners = [_with_namespace(entry, reservation.ref.namespace) for entry in fields["owners"]]
    resources = {name: _text(amount) for name, amount in fields["resources"].items()}
    return fields | {"owners": owners, "resources": resources}


def _with_namespace(entry: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Write the default namespace into an owner entry without one."""
    parts = {field: dict(entry[field]) for field in _PARTS if entry.get(field) is not None}
    if not parts:
        problem = f"has only fields that this version does not know: {shorten(', '.join(entry))}"
        raise InvalidInput("owners", problem, "move it with the version that wrote it")
    if not any(part.get("namespace") for part in parts.values()):
        next(iter(parts.values()))["namespace"] = namespace
    return parts


def _text(amount: str | float) -> str | int:
    return str(amount) if isinstance(amount, float) else amount


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


_MOST_SPEC = 2048
"""Bound on a spec in the history, in bytes; a larger spec is left out."""

_MOST_WRITTEN = 8192
"""Most characters of a spec that are parsed for the history."""

_NOT_RESTORED = {"author", "expiresAt", "origin", "placements", "requestId", "ttl"}
"""Fields that a restored reservation does not inherit; the history has its expiry elsewhere."""


def kept_spec(ending: Ending) -> str:
    """Return the spec of a removed or idle reservation for the history; empty for any other."""
    if (
        ending.outcome not in {Outcome.REMOVED, Outcome.IDLE}
        or not 0 < len(ending.text) <= _MOST_WRITTEN
    ):
        return ""
    try:
        written = document.parse(ending.text)
    except InvalidInput:
        return ""
    if not isinstance(written, dict):
        return ""
    kept = {key: value for key, value in written.items() if key not in _NOT_RESTORED}
    text = encode(kept).decode()
    return text if len(text.encode()) <= _MOST_SPEC else ""
