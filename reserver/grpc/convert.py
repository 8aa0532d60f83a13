"""Reservations as the gRPC API shows them.

The JSON form of a ReservationSpec is the spec of a ConfigMap, except for the names of enums and the
way a lifetime is written; so both can say the same.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from reserver.cluster import quantity
from reserver.cluster.labels import Requirement, Selector, equals
from reserver.cluster.pod import Controller, PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import (
    HOME,
    MOST_AUTHOR,
    MOST_IN_SET,
    MOST_LABELS,
    SET_BYTES,
    check_bytes,
)
from reserver.k8s.objects.times import show_moment
from reserver.reservations.enums import StoreKind
from reserver.reservations.owner import OwnerRule, Replaced
from reserver.reservations.placement import Parts
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ReservationState
from reserver.stores.codec import document
from reserver.stores.codec.contract import to_document, to_message
from reserver.stores.codec.placement_codec import show_parts
from reserver.stores.codec.spec_codec import DEFAULT_TTL_S, MAX_TTL_S
from reserver.stores.configmap.entries import EntryProblem
from reserver.v1 import reservation_pb2 as pb

_UNSHOWN = ("requestId", "origin", "author")
_LATEST_S = 253_402_300_799  # The year 9999, where RFC 3339 ends.


def write(
    spec: pb.ReservationSpec, now: float, request_id: str = "", author: str = ""
) -> dict[str, Any]:
    """Return the document to store for a spec; it says until when it holds, not for how long.

    Args:
        spec: as it was sent.
        now: unix seconds, from which a ``ttl`` counts.
        request_id: what the client calls its request; may be empty.
        author: the user who calls; empty if that is unknown.

    Raises:
        InvalidInput: it cannot be written at all; all else is for `specform.read` to refuse.
    """
    check_bytes(spec.ByteSize(), HOME.spec_bytes)
    written = to_document(spec)
    written.pop("ttl", None)
    if not spec.HasField("expires_at"):
        written |= lifetime(seconds_of(spec.ttl) if spec.HasField("ttl") else DEFAULT_TTL_S, now)
    elif spec.HasField("ttl"):
        raise InvalidInput("ttl", "cannot be set together with expiresAt", "write one of them")
    if request_id:
        written["requestId"] = request_id
    if author:
        written["author"] = author[:MOST_AUTHOR]
    return written


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


def lifetime(ttl_s: float, now: float) -> dict[str, Any]:
    """Return the field that says when something that lives `ttl_s` seconds expires.

    Raises:
        InvalidInput: it is negative, or more than a hundred years.
    """
    if not 0 <= ttl_s <= MAX_TTL_S:
        problem = f"{quantity.shorten(str(ttl_s))} seconds are out of range"
        raise InvalidInput("ttl", problem, "write zero to hold for ever")
    return {"expiresAt": show_moment(int(now + ttl_s))} if ttl_s else {"ttl": 0}


def with_placements(document: Mapping[str, Any], placed: Parts, ref: Ref) -> dict[str, Any]:
    """Return a document that says where its reservation is placed, if that is said there.

    Nothing is said of one that is not placed; of a Reservation its status says it.
    """
    said = {name: value for name, value in document.items() if name != "placements"}
    is_said = bool(placed) and ref.kind is StoreKind.CONFIGMAP
    return said | ({"placements": show_parts(placed)} if is_said else {})


def expiry(reservation: Reservation) -> dict[str, Any]:
    """Return the field that says when a reservation expires."""
    if reservation.expires_at is None:
        return {"ttl": 0}
    return {"expiresAt": show_moment(reservation.expires_at)}


def with_lifetime(text: str, lifetime: Mapping[str, Any], ref: Ref) -> dict[str, Any]:
    """Return what is written at a ref with another lifetime.

    An object keeps its ``ttl``: it is that of a manifest, which may be applied again and again, and
    from now on ``expiresAt`` counts.
    """
    written: dict[str, Any] = document.parse(text)
    gone = {"expiresAt"} if ref.kind is StoreKind.OBJECT else {"expiresAt", "ttl"}
    kept = {name: value for name, value in written.items() if name not in gone}
    return {**kept, **lifetime}


def moment(timestamp: Timestamp, path: str) -> str:
    """Return a time as it is stored.

    Raises:
        InvalidInput: it is out of range.
    """
    try:
        return timestamp.ToJsonString()
    except ValueError as exc:
        raise InvalidInput(path, f"{timestamp.seconds} is out of range", "check the unit") from exc


def encode_document(written: Mapping[str, Any]) -> str:
    """Return a document as the value of a data key."""
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def request_id_of(text: str) -> str:
    """Return the id of the request that wrote a value; empty if it has none."""
    return str(unshown(text).get("requestId", ""))


def unshown(text: str) -> dict[str, Any]:
    """Return the written fields that the API's spec does not have; changes keep them."""
    if not any(f'"{name}"' in text for name in _UNSHOWN):
        return {}  # Most need not be parsed.
    written = document.parse(text)
    if not isinstance(written, dict):
        return {}
    return {name: written[name] for name in _UNSHOWN if name in written}


def show(
    reservation: Reservation,
    text: str,
    status: ReservationState,
    claims: Mapping[str, PodName],
    since: float = 0.0,
) -> pb.Reservation:
    """Return a reservation as the API shows it.

    Args:
        reservation: the reservation.
        text: what it was read from.
        status: what became of it.
        claims: the pods that claimed a slot of it, by UID.
        since: when it was first seen, unix seconds; 0 if it is only being written.
    """
    shown = pb.Reservation(
        name=reservation.ref.key,
        id=str(reservation.ref),
        spec=_spec(reservation, text),
        status=pb.ReservationStatus(
            phase=f"PHASE_{status.phase.upper()}",
            backed=status.is_backed,
            reason=status.reason,
            message=status.message,
            placements=show_parts_of(reservation),
            claims=[pb.Claim(pod=str(pod), uid=uid) for uid, pod in sorted(claims.items())],
        ),
        etag=reservation.digest,
        author=reservation.author,
    )
    if since:
        _set(shown.since, since)
    return shown


def with_labels(shown: pb.Reservation, labels: Mapping[str, str]) -> pb.Reservation:
    """Return a reservation, which is changed, with the first labels of its object."""
    shown.labels.update(heapq.nsmallest(MOST_LABELS, labels.items()))
    return shown


def show_problem(problem: EntryProblem) -> pb.Reservation:
    """Return an entry that cannot be read as the API shows it: an item of a list by its index."""
    path = problem.error.path
    item = path[1:].partition("]")[0] if path.startswith("[") else ""
    return pb.Reservation(
        name=problem.ref.key,
        id=str(problem.ref._replace(item=item)),
        status=pb.ReservationStatus(
            phase=pb.PHASE_INVALID, reason="InvalidSpec", message=str(problem.error)
        ),
    )


def owner_rule(owner: pb.Owner, home: str) -> OwnerRule:
    """Return the pods of an owner entry; `home` is the namespace of its reservation."""
    selector, controller = owner.selector, owner.controller
    named = (each.namespace for each in (owner.pod, controller, selector) if each.namespace)
    expressions = (
        Requirement(each.key, each.operator, frozenset(each.values))
        for each in selector.match_expressions
    )
    return OwnerRule(
        namespace=next(named, home),
        pod=owner.pod.name,
        controller=Controller(controller.kind, controller.name),
        selector=Selector((*equals(selector.match_labels).requirements, *expressions)),
        replaces=Replaced(owner.replaces.uid, frozenset(owner.replaces.existing)),
    )


def show_parts_of(reservation: Reservation) -> list[pb.PlacedSlots]:
    """Return where a reservation is."""
    return [pb.PlacedSlots(node=node, slots=slots) for node, slots in reservation.parts]


def parse_id(text: str) -> Ref | None:
    """Return the ref that an id names; None for a plain name."""
    path, bracket, item = text.partition("[")
    match path.split("/"), bracket:
        case [_], "":
            return None
        case [namespace, name], "":
            return Ref.of_object(namespace, name)
        case [namespace, configmap, key], _ if configmap and item.endswith("]") == bool(bracket):
            return Ref(namespace, configmap, key, item.removesuffix("]"))
    problem = f"{quantity.shorten(text)!r} is neither a name nor an id"
    remedy = "write NAME, NAMESPACE/CONFIGMAP/KEY or, of an object, NAMESPACE/NAME"
    raise InvalidInput("name", problem, remedy)


def _spec(reservation: Reservation, text: str) -> pb.ReservationSpec:
    written = _of_item(reservation) if reservation.ref.item else document.parse(text)
    # Always: in objects the API server fills in the default.
    told = {"slots": reservation.slots, "policy": reservation.policy}
    spec = to_message({**written, **told})
    if reservation.starts_at is not None:
        _set(spec.starts_at, reservation.starts_at)
    if reservation.expires_at is None:
        spec.ttl.SetInParent()
    else:
        _set(spec.expires_at, reservation.expires_at)
    return spec


def _of_item(reservation: Reservation) -> dict[str, Any]:
    """Return an item of a list as the spec that says the same."""
    return {
        "owners": [
            {"pod": {"name": pod.name, "namespace": pod.namespace}}
            for pod in sorted(reservation.owners)
        ],
        "node": reservation.node,
        "resources": {
            name: quantity.show(name, amount) for name, amount in reservation.resources.items()
        },
    }


def _set(timestamp: Timestamp, seconds: float) -> None:
    timestamp.FromMicroseconds(round(min(seconds, _LATEST_S) * 1_000_000))
