"""The catalogue: all reservations as messages of the gRPC API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reserver.errors import InvalidInput
from reserver.grpc import convert
from reserver.grpc.status_errors import missing
from reserver.k8s.objects.limits import limits_at
from reserver.reservations.enums import StoreKind
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.stores.archive import Archive
from reserver.stores.codec import newer_fields, spec_codec
from reserver.stores.entries import Entries
from reserver.v1 import reservation_pb2 as pb


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
        ref = convert.parse_id(name) or self.stores.find(name)
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
        labels, problems = self.stores.labels(ref), map(convert.show_problem, entries.problems)
        shown = (convert.with_labels(each, labels) for each in problems)
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
        shown = convert.show(reservation, text, status, ledger.claims(ref), ledger.since(ref))
        shown.status.assumes_namespace = self._assumes_namespace(ref, shown.spec)
        return convert.with_labels(shown, self.stores.labels(ref))

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
