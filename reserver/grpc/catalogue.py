"""The catalogue: all reservations as messages of the gRPC API."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from reserver.base.schedule import Occurrence
from reserver.cluster import quantity
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.grpc.status_errors import missing
from reserver.k8s.objects.limits import MOST_LABELS, limits_at
from reserver.reservations.digest import etag
from reserver.reservations.enums import StoreKind
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ReservationState, ShortNodes
from reserver.scheduling.state import State
from reserver.stores.archive import Archive
from reserver.stores.codec import document, newer_fields, spec_codec
from reserver.stores.codec.spec_message import to_message
from reserver.stores.entries import Entries, EntryProblem
from reserver.v1 import reservation_pb2 as pb

_LATEST_S = 253_402_300_799  # The year 9999, where RFC 3339 ends.


class ListedStores(Protocol):
    """The part of `stores.Stores` that the catalogue uses."""

    def find(self, name: str) -> Ref | None:
        """Return the ref of the reservation with a name, stored or pending; None if absent."""

    def latest(self, ref: Ref) -> tuple[str, Entries] | None:
        """Return the text and entries at a ref, stored or pending; None if neither exists."""

    def labels(self, ref: Ref) -> Mapping[str, str]:
        """Return the labels of the object at a ref."""

    def short_nodes(self, state: State, now: float) -> ShortNodes:
        """Return the short nodes at `now`, in unix seconds."""


@dataclass(eq=False, repr=False)
class Catalogue:
    """All reservations as messages of the gRPC API.

    Attributes:
        stores: the stored and pending entries.
        state: the ledger and the snapshot.
        clock: returns unix seconds.
        home: Reserver's own namespace (`limits_at`).
        archive: the outcomes of ended reservations.
    """

    stores: ListedStores
    state: State
    clock: Callable[[], float]
    home: str
    archive: Archive

    def find(self, name: str) -> Ref:
        """Return the ref of the reservation with a name or an id.

        Raises:
            InvalidInput: the text is neither a name nor an id.
            CallError: the reservation is absent.
        """
        if not name:
            raise InvalidInput("name", "is empty", "name a reservation")
        ref = parse_id(name) or self.stores.find(name)
        if ref is None or not (self.reservation(ref) or self.problem(ref)):
            past = self.archive.last(name, self.clock())
            raise missing(name, past.told if past else "")
        return ref

    def text(self, ref: Ref) -> str:
        """Return the text at a ref; empty if absent."""
        latest = self.stores.latest(ref._replace(item=""))
        return latest[0] if latest else ""

    def reservation(self, ref: Ref) -> Reservation | None:
        """Return the reservation of a ref; None if absent."""
        latest = self.stores.latest(ref._replace(item=""))
        here = (r for r in latest[1].reservations if r.ref == ref) if latest else iter(())
        return next(map(self.state.ledger.current, here), None)

    def broken(self, ref: Ref) -> list[pb.Reservation]:
        """Return the invalid entries of a ref without reservations, ignoring its `item`."""
        latest = self.stores.latest(ref._replace(item=""))
        if latest is None:
            return []
        entries = latest[1]
        known = {str(reservation.ref) for reservation in entries.reservations}
        labels, problems = self.stores.labels(ref), map(show_problem, entries.problems)
        shown = (with_labels(each, labels) for each in problems)
        return [each for each in shown if each.id not in known]

    def problem(self, ref: Ref) -> pb.Reservation | None:
        """Return the invalid entry of a ref; None if it is valid or absent."""
        return next((each for each in self.broken(ref) if each.id == str(ref)), None)

    def read(
        self, document: Mapping[str, Any], ref: Ref, *, is_stored: bool = False
    ) -> Reservation:
        """Return the reservation of a document at a ref.

        A stored document (`is_stored`) may have fields of a newer version.

        Raises:
            InvalidInput: a field is invalid at this ref.
        """
        limits, now = limits_at(ref, self.home), self.clock()
        if not is_stored:
            return spec_codec.read(document, ref, now, limits).at(now)
        return newer_fields.read(document, ref, now, limits, was_in_force=True)[0].at(now)

    def short_nodes(self) -> ShortNodes:
        """Return the present short nodes."""
        return self.stores.short_nodes(self.state, self.clock())

    def written(self, ref: Ref) -> list[tuple[Reservation, str]]:
        """Return the reservations of a ref, or of its item if given, each with its text."""
        latest = self.stores.latest(ref._replace(item=""))
        if latest is None:
            return []
        text, entries = latest
        found = (r for r in entries.reservations if not ref.item or r.ref == ref)
        return [(self.state.ledger.current(each), text) for each in found]

    def show_written(
        self, reservation: Reservation, text: str, short_nodes: ShortNodes
    ) -> pb.Reservation:
        """Return the message of a reservation with its present status."""
        ledger = self.state.ledger
        status, ref = short_nodes.status(reservation, ledger), reservation.ref
        latest = self.stores.latest(ref.whole)
        if latest is not None and latest[1].ignored:
            message = "; ".join(filter(None, (status.message, latest[1].ignored)))
            status = status._replace(message=message)
        shown = show(reservation, text, status, ledger.claims(ref), ledger.since(ref))
        shown.status.assumes_namespace = self._assumes_namespace(ref, shown.spec)
        return with_labels(shown, self.stores.labels(ref))

    def _assumes_namespace(self, ref: Ref, spec: pb.ReservationSpec) -> bool:
        """Return whether an owner has Reserver's own namespace by default."""
        if ref.kind is not StoreKind.CONFIGMAP or ref.namespace != self.home:
            return False
        return any(
            not (o.pod.namespace or o.controller.namespace or o.selector.namespace)
            for o in spec.owners
        )

    def show(self, ref: Ref) -> list[pb.Reservation]:
        """Return the messages of a ref, or of its item if given; empty if absent."""
        found = self.written(ref)
        short_nodes = self.short_nodes() if found else None
        shown = [self.show_written(r, text, short_nodes) for r, text in found if short_nodes]
        return shown + [each for each in self.broken(ref) if not ref.item or each.id == str(ref)]

    def show_one(self, ref: Ref) -> pb.Reservation:
        """Return the message of a reservation.

        Raises:
            CallError: the reservation is absent.
        """
        shown = self.show(ref)
        if not shown:
            raise missing(str(ref))
        return shown[0]


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
