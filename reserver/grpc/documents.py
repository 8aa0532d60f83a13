"""Documents that calls write into a store, and reservations that have no place in one yet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from reserver.cluster import quantity
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import (
    HOME,
    MOST_AUTHOR,
    MOST_IN_SET,
    SET_BYTES,
    check_bytes,
    check_memory,
)
from reserver.k8s.objects.times import show_moment
from reserver.reservations.enums import StoreKind
from reserver.reservations.placement import Parts
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document
from reserver.stores.codec.lifetime_codec import DEFAULT_TTL_S, MAX_TTL_S
from reserver.stores.codec.newer_fields import known_part
from reserver.stores.codec.placement_codec import show_parts
from reserver.stores.codec.spec_message import to_document
from reserver.v1 import reservation_pb2 as pb

_UNSHOWN = ("requestId", "origin", "author")


@dataclass(frozen=True, slots=True)
class Draft:
    """A reservation that is asked for.

    Attributes:
        path: where it stands in the request, as a prefix: empty, or with a dot at its end.
    """

    name: str
    path: str
    document: dict[str, Any]
    labels: Mapping[str, str]

    @property
    def size(self) -> int:
        """How many bytes are to be written, without where it is placed."""
        return len(encode(self.document).encode())

    def text(self, placed: Parts, ref: Ref) -> str:
        """Return the JSON to write at a ref for a reservation as placed."""
        return encode(with_placements(self.document, placed, ref))

    def at(self, ref: Ref, new_id: str) -> Draft:
        """Return the draft for a ref; `new_id` distinguishes it from others of that name.

        Another object of that name is another reservation. Its identity has to be written before
        the API server gives it a UID: it may be claimed while it is being written.
        """
        if ref.kind is StoreKind.CONFIGMAP:
            return self
        origin = f"{ref._replace(key=self.name)}#{new_id}"
        return replace(self, document={**self.document, "origin": origin})


def write(
    spec: pb.ReservationSpec, now: float, request_id: str = "", author: str = ""
) -> dict[str, Any]:
    """Return the document to store for a spec; it has the time of its end, not a lifetime.

    Args:
        spec: as it was sent.
        now: unix seconds, from which a ``ttl`` counts.
        request_id: the client's id of its request; may be empty.
        author: the user who calls; empty if that is unknown.

    Raises:
        InvalidInput: it cannot be written at all; all else is for `spec_codec.read` to refuse.
    """
    check_bytes(spec.ByteSize(), HOME.spec_bytes)
    _check_memory(spec)
    written = to_document(spec)
    written.pop("ttl", None)
    if spec.HasField("schedule"):
        written |= _endless(spec)
    elif not spec.HasField("expires_at"):
        written |= lifetime(seconds_of(spec.ttl) if spec.HasField("ttl") else DEFAULT_TTL_S, now)
    elif spec.HasField("ttl"):
        raise InvalidInput("ttl", "cannot be set together with expiresAt", "write one of them")
    if request_id:
        written["requestId"] = request_id
    if author:
        written["author"] = author[:MOST_AUTHOR]
    return written


def _endless(spec: pb.ReservationSpec) -> dict[str, Any]:
    """Return the ``ttl`` of what recurs: a version without schedules holds it all the time."""
    if spec.ttl.ByteSize():
        raise InvalidInput("ttl", "cannot be set together with schedule", "remove it")
    return {"ttl": 0}


def _check_memory(spec: pb.ReservationSpec) -> None:
    """Refuse memory in a wrong unit: `spec_codec` lets pass what Reserver itself has written."""
    text = spec.resources.get("memory", "0")
    with under("resources.memory"):
        check_memory(quantity.amount("memory", text), text, "", HOME.least_memory)


def check_namespace(namespace: str) -> None:
    """Refuse a namespace that no object can be in; empty is our own.

    Raises:
        InvalidInput: at ``namespace``.
    """
    if namespace:
        names.check_label(namespace, "namespace", "a namespace")


def check_set(specs: Sequence[pb.ReservationSpec]) -> None:
    """Refuse a set that is empty or too large, before any of it is read.

    Raises:
        InvalidInput: at ``reservations``.
    """
    if not 0 < len(specs) <= MOST_IN_SET:
        problem = f"{len(specs)} reservations"
        raise InvalidInput("reservations", problem, f"send 1 to {MOST_IN_SET}")
    size = sum(spec.ByteSize() for spec in specs)
    if size > SET_BYTES:
        problem = f"{size} bytes are too many for one call"
        raise InvalidInput("reservations", problem, f"send {SET_BYTES} at most")


def seconds_of(duration: Duration) -> float:
    """Return a duration in seconds; only one that is zero is zero: that is for ever."""
    return float(duration.seconds) + float(duration.nanos) / 1e9


def moment(timestamp: Timestamp, path: str) -> str:
    """Return a time as it is stored.

    Raises:
        InvalidInput: it is out of range.
    """
    try:
        return timestamp.ToJsonString()
    except ValueError as exc:
        raise InvalidInput(path, f"{timestamp.seconds} is out of range", "check the unit") from exc


def lifetime(ttl_s: float, now: float) -> dict[str, Any]:
    """Return the field with the expiry of a reservation that lives `ttl_s` seconds.

    Raises:
        InvalidInput: it is negative, or more than a hundred years.
    """
    if not 0 <= ttl_s <= MAX_TTL_S:
        problem = f"{shorten(str(ttl_s))} seconds are out of range"
        raise InvalidInput("ttl", problem, "write zero to hold for ever")
    return {"expiresAt": show_moment(int(now + ttl_s))} if ttl_s else {"ttl": 0}


def expiry(reservation: Reservation) -> dict[str, Any]:
    """Return the field with the expiry of a reservation."""
    if reservation.expires_at is None or reservation.recurrence is not None:
        return {"ttl": 0}
    return {"expiresAt": show_moment(reservation.expires_at)}


def with_lifetime(text: str, lifetime: Mapping[str, Any], ref: Ref) -> dict[str, Any]:
    """Return what is written at a ref with another lifetime.

    An object keeps its ``ttl``: it is that of a manifest, which may be applied again and again, and
    from now on ``expiresAt`` counts.
    """
    gone = {"expiresAt"} if ref.kind is StoreKind.OBJECT else {"expiresAt", "ttl"}
    written: dict[str, Any] = document.parse(text)
    return {**{name: each for name, each in written.items() if name not in gone}, **lifetime}


def with_placements(document: Mapping[str, Any], placed: Parts, ref: Ref) -> dict[str, Any]:
    """Return a document with the nodes of its reservation; of an object, the status has them."""
    written = {name: value for name, value in document.items() if name != "placements"}
    if placed and ref.kind is StoreKind.CONFIGMAP:
        written["placements"] = show_parts(placed)
    return written


def encode(written: Mapping[str, Any]) -> str:
    """Return a document as the value of a data key."""
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def unshown(text: str) -> dict[str, Any]:
    """Return the written fields that the API's spec does not have; changes keep them."""
    if not any(f'"{name}"' in text for name in _UNSHOWN):
        return {}  # Most need not be parsed.
    written = document.parse(text)
    if not isinstance(written, dict):
        return {}
    return {name: written[name] for name in _UNSHOWN if name in written}


def newer(text: str) -> dict[str, Any]:
    """Return the fields of a newer version that a text has; changes keep them.

    Raises:
        InvalidInput: fields that a change replaces have such fields, which it would lose.
    """
    written = document.parse(text)
    ignored = known_part(written, "", was_in_force=True).ignored
    if lost := [path for path in ignored if path not in written]:
        problem = f"{', '.join(lost)}: of a newer version, and an update would lose it"
        raise InvalidInput("", problem, "edit the entry itself, or use the newer version")
    return {name: written[name] for name in ignored}


def request_id_of(text: str) -> str:
    """Return the id of the request that wrote a value; empty if it has none."""
    return str(unshown(text).get("requestId", ""))
