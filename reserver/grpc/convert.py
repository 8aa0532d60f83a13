"""Converts reservations to messages of the gRPC API, and owners and ids of messages back."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from reserver.base.schedule import Occurrence
from reserver.cluster import quantity
from reserver.cluster.labels import Requirement, Selector, equals
from reserver.cluster.pod import Controller, PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_LABELS
from reserver.reservations.digest import etag
from reserver.reservations.owner import OwnerRule, Replaced
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ReservationState
from reserver.stores.codec import document
from reserver.stores.codec.spec_message import to_message
from reserver.stores.entries import EntryProblem
from reserver.v1 import reservation_pb2 as pb

_LATEST_S = 253_402_300_799  # The year 9999, where RFC 3339 ends.


def show(
    reservation: Reservation,
    text: str,
    status: ReservationState,
    claims: Mapping[str, PodName],
    since: float = 0.0,
) -> pb.Reservation:
    """Return the message of a reservation that was read from a text.

    The claims are by UID. `since` is the time at which Reserver first saw the reservation, in unix
    seconds; 0 while the write is pending.
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
            occurrences=map(_occurrence, reservation.next_occurrences),
        ),
        etag=etag(reservation),
        author=reservation.author,
    )
    if since:
        _set(shown.since, since)
    if status.idle_since:
        _set(shown.status.idle_since, status.idle_since)
    return shown


def with_labels(shown: pb.Reservation, labels: Mapping[str, str]) -> pb.Reservation:
    """Add the first labels of its object, by name, to a reservation; return the reservation."""
    shown.labels.update(heapq.nsmallest(MOST_LABELS, labels.items()))
    return shown


def show_problem(problem: EntryProblem) -> pb.Reservation:
    """Return the message of an invalid entry, with the index of an item of a list in its id."""
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
    """Return the rule of an owner message; `home` is the namespace of its reservation."""
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
    """Return the nodes and slots of a reservation."""
    return [pb.PlacedSlots(node=node, slots=slots) for node, slots in reservation.parts]


def parse_id(text: str) -> Ref | None:
    """Return the ref of an id; None for a plain name."""
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
    # Always present, as in objects, where the API server fills in the defaults.
    defaulted: dict[str, object] = {"slots": reservation.slots, "policy": reservation.policy}
    if reservation.is_whole:
        del defaulted["slots"]
    spec = to_message({**written, **defaulted})
    if reservation.recurrence is not None:
        if reservation.recurrence.first is not None:
            _set(spec.starts_at, reservation.recurrence.first)
        return spec
    if reservation.starts_at is not None:
        _set(spec.starts_at, reservation.starts_at)
    if reservation.expires_at is None:
        spec.ttl.SetInParent()
    else:
        _set(spec.expires_at, reservation.expires_at)
    return spec


def _occurrence(occurrence: Occurrence) -> pb.Occurrence:
    shown = pb.Occurrence()
    _set(shown.starts_at, occurrence.start)
    _set(shown.ends_at, occurrence.end)
    return shown


def _of_item(reservation: Reservation) -> dict[str, Any]:
    """Return the equivalent spec of an item of a list."""
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
