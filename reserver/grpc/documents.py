"""The documents that calls write into a store, and drafts of reservations without a ref."""

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
    """A requested reservation.

    Attributes:
        path: the prefix of its fields' paths in the request: empty, or with a dot at its end.
    """

    name: str
    path: str
    document: dict[str, Any]
    labels: Mapping[str, str]

    @property
    def size(self) -> int:
        """The size of its document without placements, in bytes."""
        return len(encode(self.document).encode())

    def text(self, placed: Parts, ref: Ref) -> str:
        """Return the JSON of its document with placements, for a ref."""
        return encode(with_placements(self.document, placed, ref))

    def at(self, ref: Ref, new_id: str) -> Draft:
        """Return the draft for a ref; for an object with `new_id` in its origin.

        A later object of the same name is another reservation. Its identity must be in the spec
        before the API server assigns a UID: a pod may claim it while it is being written.
        """
        if ref.kind is StoreKind.CONFIGMAP:
            return self
        origin = f"{ref._replace(key=self.name)}#{new_id}"
        return replace(self, document={**self.document, "origin": origin})


def write(
    spec: pb.ReservationSpec, now: float, request_id: str = "", author: str = ""
) -> dict[str, Any]:
    """Return the document to store for a spec, with ``expiresAt`` instead of a ``ttl``.

    Args:
        spec: the message of the request.
        now: start of a ``ttl``, in unix seconds.
        request_id: the client's id of its request; may be empty.
        author: the user of the call; empty if unknown.

    Raises:
        InvalidInput: the spec has no document; `spec_codec.read` checks everything else.
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
    """Return the ``ttl`` of a recurring spec: zero, so an older version holds it all the time."""
    if spec.ttl.ByteSize():
        raise InvalidInput("ttl", "cannot be set together with schedule", "remove it")
    return {"ttl": 0}


def _check_memory(spec: pb.ReservationSpec) -> None:
    """Refuse memory in a wrong unit; `spec_codec` exempts specs written by Reserver itself."""
    text = spec.resources.get("memory", "0")
    with under("resources.memory"):
        check_memory(quantity.amount("memory", text), text, "", HOME.least_memory)


def check_namespace(namespace: str) -> None:
    """Refuse an invalid name of a namespace; empty stands for Reserver's own.

    Raises:
        InvalidInput: at ``namespace``.
    """
    if namespace:
        names.check_label(namespace, "namespace", "a namespace")


def check_set(specs: Sequence[pb.ReservationSpec]) -> None:
    """Refuse an empty or too large set, before its specs are parsed.

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
    """Return a duration in seconds; only an exact zero, which means for ever, becomes zero."""
    return float(duration.seconds) + float(duration.nanos) / 1e9


def moment(timestamp: Timestamp, path: str) -> str:
    """Return a time in RFC 3339.

    Raises:
        InvalidInput: the time is out of range.
    """
    try:
        return timestamp.ToJsonString()
    except ValueError as exc:
        raise InvalidInput(path, f"{timestamp.seconds} is out of range", "check the unit") from exc


def lifetime(ttl_s: float, now: float) -> dict[str, Any]:
    """Return the field for the expiry `ttl_s` seconds after `now`; 0 means no expiry.

    Raises:
        InvalidInput: the lifetime is negative, or longer than a hundred years.
    """
    if not 0 <= ttl_s <= MAX_TTL_S:
        problem = f"{shorten(str(ttl_s))} seconds are out of range"
        raise InvalidInput("ttl", problem, "write zero to hold for ever")
    return {"expiresAt": show_moment(int(now + ttl_s))} if ttl_s else {"ttl": 0}


def expiry(reservation: Reservation) -> dict[str, Any]:
    """Return the field for the present expiry of a reservation."""
    if reservation.expires_at is None or reservation.recurrence is not None:
        return {"ttl": 0}
    return {"expiresAt": show_moment(reservation.expires_at)}


def with_lifetime(text: str, lifetime: Mapping[str, Any], ref: Ref) -> dict[str, Any]:
    """Return the document at a ref with another lifetime.

    An object keeps its ``ttl``, which may come from a manifest that is applied repeatedly;
    ``expiresAt`` takes precedence.
    """
    gone = {"expiresAt"} if ref.kind is StoreKind.OBJECT else {"expiresAt", "ttl"}
    written: dict[str, Any] = document.parse(text)
    return {**{name: each for name, each in written.items() if name not in gone}, **lifetime}


def with_placements(document: Mapping[str, Any], placed: Parts, ref: Ref) -> dict[str, Any]:
    """Return a document with placements; for an object without, as they are in its status."""
    written = {name: value for name, value in document.items() if name != "placements"}
    if placed and ref.kind is StoreKind.CONFIGMAP:
        written["placements"] = show_parts(placed)
    return written


def encode(written: Mapping[str, Any]) -> str:
    """Return a document as the value of a data key."""
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def unshown(text: str) -> dict[str, Any]:
    """Return the fields of a text that are not in the API's spec; changes keep them."""
    if not any(f'"{name}"' in text for name in _UNSHOWN):
        return {}  # Most texts need not be parsed.
    written = document.parse(text)
    if not isinstance(written, dict):
        return {}
    return {name: written[name] for name in _UNSHOWN if name in written}


def newer(text: str) -> dict[str, Any]:
    """Return the fields of a newer version in a text; changes keep them.

    Raises:
        InvalidInput: a newer field is inside a field that the change replaces, and would be lost.
    """
    written = document.parse(text)
    ignored = known_part(written, "", was_in_force=True).ignored
    if lost := [path for path in ignored if path not in written]:
        problem = f"{', '.join(lost)}: of a newer version, and an update would lose it"
        raise InvalidInput("", problem, "edit the entry itself, or use the newer version")
    return {name: written[name] for name in ignored}


def request_id_of(text: str) -> str:
    """Return the id of the request that wrote a text; empty without one."""
    return str(unshown(text).get("requestId", ""))
