"""Reads Reservation objects as entries, up to a bound for each namespace, and tracks their sets.

The API server writes one object at a time. So the first member of a set is marked as unfinished
until all are written. The next Reserver rolls such a set back: it marks that member as abandoned,
so that no writer finishes the set, and then deletes all members (docs/adr/0012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from reserver.base.quarantine import quarantined
from reserver.errors import InvalidInput, TooMany
from reserver.k8s.objects.limits import KEPT, MOST_OBJECTS, SpecLimits, check_bytes, limits_at
from reserver.k8s.objects.times import parse_moment
from reserver.reservations.enums import Phase
from reserver.reservations.placement import Placement, clipped
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document, newer_fields, placement_codec
from reserver.stores.codec.placement_codec import read_parts
from reserver.stores.configmap.status_codec import INVALID
from reserver.stores.entries import Entries, EntryProblem
from reserver.stores.object.codec import (
    PLACEMENT_ANNOTATION,
    ObjectMetadata,
    ReservationObject,
    ReservationStatus,
)


def read_object(item: ReservationObject, seen_at: float, home: str) -> Entries:
    """Return the entries of a Reservation.

    A ``ttl`` counts from the creationTimestamp, so no expiry has to be written back.

    Args:
        item: the object.
        seen_at: start of a ``ttl`` of an object without creationTimestamp, in unix seconds.
        home: Reserver's own namespace (`limits_at`).
    """
    ref, status, beyond = item.ref, item.stored_status(), ""
    try:
        reservation, ignored = _read(item, seen_at, limits_at(ref, home))
    except InvalidInput as exc:
        problems = (EntryProblem(ref, exc.under("spec")),)
        if status is None or not _was_in_force(item, status):
            return Entries(problems=problems)
        try:
            (reservation, ignored), beyond = _read(item, seen_at, KEPT), str(exc.under("spec"))
        except InvalidInput:
            return Entries(problems=problems)
    reservation = replace(
        reservation,
        # A later object of the same name is another reservation, with another UID.
        origin=reservation.origin or f"{ref}#{item.metadata.uid}",
        created_at=_created(item, 0.0),
        is_seat=item.metadata.is_seat,
        volume_claims=item.metadata.volume_claims,
        fallback=_fallback(item, limits_at(ref, home)),
    )
    return Entries((with_placements(reservation, status),), beyond=beyond, ignored=ignored)


def _read(item: ReservationObject, seen_at: float, limits: SpecLimits) -> tuple[Reservation, str]:
    """Return the reservation, and a line about its ignored fields; its CRD excludes misspelling."""
    check_bytes(len(item.spec), limits.spec_bytes)
    spec = document.parse(_text(item.spec))
    return newer_fields.read(spec, item.ref, _created(item, seen_at), limits, was_in_force=True)


def _was_in_force(item: ReservationObject, status: ReservationStatus) -> bool:
    """Return whether the status, which only Reserver writes, shows that this spec was accepted."""
    return status.observed_generation == item.metadata.generation and status.phase != Phase.INVALID


def _fallback(item: ReservationObject, limits: SpecLimits) -> Placement | None:
    """Return the placement of the pod of a seat; None for other objects, and without one."""
    written = (item.metadata.annotations or {}).get(PLACEMENT_ANNOTATION)
    if not item.metadata.is_seat or written is None or len(written) > limits.spec_bytes:
        return None
    try:
        return placement_codec.read(document.parse(written), item.metadata.namespace, limits)
    except InvalidInput:
        return None  # Not written by Reserver.


def with_placements(reservation: Reservation, status: ReservationStatus | None) -> Reservation:
    """Return a reservation with the placements of its status, if Reserver chooses its node."""
    if reservation.node:
        return reservation
    try:
        parts = read_parts(status.placements) if status else ()
    except InvalidInput:
        parts = ()  # Not written by Reserver.
    return replace(reservation, placed=clipped(parts, reservation.most_slots))


def _text(spec: msgspec.Raw) -> str:
    try:
        text = bytes(spec).decode()
    except UnicodeDecodeError as exc:
        raise InvalidInput("", "is not UTF-8", "write it in UTF-8") from exc
    if not text:
        raise InvalidInput("", "is missing", "write owners and resources")
    return text


def _created(item: ReservationObject, seen_at: float) -> float:
    try:
        return parse_moment(item.metadata.creation_timestamp)
    except InvalidInput:
        return seen_at


@dataclass(slots=True)
class KnownObject:
    """A Reservation, as last read.

    Attributes:
        status: its status; None if absent, or not written by Reserver.
        is_read: False for an object beyond the bound of its namespace: its spec is not kept.
    """

    metadata: ObjectMetadata
    spec: bytes
    entries: Entries
    status: ReservationStatus | None
    is_read: bool = True

    def is_of(self, item: ReservationObject) -> bool:
        """Return whether an object has the same UID and spec."""
        return self.metadata.uid == item.metadata.uid and self.spec == bytes(item.spec)

    @property
    def reservation(self) -> Reservation | None:
        """The reservation; None if it is not enforced."""
        return next(iter(self.entries.reservations), None)

    @property
    def text(self) -> str:
        """The spec as JSON of the API server."""
        return self.spec.decode(errors="replace")


class ObjectReading:
    """Reads objects, at most `MOST_OBJECTS` of each namespace other than Reserver's own."""

    def __init__(self, clock: Callable[[], float], home: str) -> None:
        """Begin without objects; `clock` returns unix seconds, `home` is Reserver's namespace."""
        self._clock = clock
        self._home = home
        self._read_in: dict[str, int] = {}

    def entries(self, item: ReservationObject) -> Entries:
        """Return the entries of an object."""
        return read_object(item, self._clock(), self._home)

    def require_room(self, namespace: str) -> None:
        """Refuse a new object of a namespace that has as many as are read.

        Raises:
            TooMany: the object would not be read.
        """
        if self._is_full(namespace):
            read = f"{MOST_OBJECTS} Reservations of namespace {namespace} are read"
            raise TooMany(f"{read}, and no more; delete some, and try again")

    def read(
        self, item: ReservationObject, before: KnownObject | None, *, is_pending: bool
    ) -> KnownObject:
        """Return the present object, which replaces the cached one.

        An object that was read before, even by an earlier process, or that this process writes,
        is exempt from the bound, as it may hold.
        """
        known = self._read(item, before, is_pending=is_pending)
        self._count(item.metadata.namespace, known.is_read - bool(before and before.is_read))
        return known

    def forget(self, namespace: str, known: KnownObject) -> None:
        """Count a deleted object no longer."""
        self._count(namespace, -known.is_read)

    def _read(
        self, item: ReservationObject, before: KnownObject | None, *, is_pending: bool
    ) -> KnownObject:
        status = item.stored_status()
        was_read = (before is not None and before.is_read) or (
            status is not None and status.phase != INVALID
        )
        if self._is_full(item.metadata.namespace) and not (was_read or is_pending):
            text = f"{MOST_OBJECTS} Reservations of this namespace are read, and this one is not"
            error = InvalidInput("", text, "delete some, and write it again")
            unread = Entries(problems=(EntryProblem(item.ref, error),))
            return KnownObject(item.metadata, b"", unread, status, is_read=False)
        entries = before.entries if before else Entries()
        with quarantined("store", item.ref) as faults:  # The former entries stay if this raises.
            entries = self.entries(item)
        if faults:
            entries = replace(entries, problems=(EntryProblem(item.ref, faults[0]),))
        is_short = len(item.spec) <= limits_at(item.ref, self._home).spec_bytes
        spec = bytes(item.spec) if is_short or entries.reservations else b""
        return KnownObject(item.metadata, spec, entries, status)

    def _is_full(self, namespace: str) -> bool:
        return self._read_in.get(namespace, 0) >= MOST_OBJECTS and namespace != self._home

    def _count(self, namespace: str, more: int) -> None:
        self._read_in[namespace] = self._read_in.get(namespace, 0) + more
        if not self._read_in[namespace]:
            del self._read_in[namespace]


class Sets:
    """The sets of the cached objects, and the state of their deletion."""

    def __init__(self, changed: Callable[[Ref], None]) -> None:
        """Begin without sets; `changed` is called with members to write or delete."""
        self._changed = changed
        self._of: dict[Ref, str] = {}
        self._members: dict[str, dict[Ref, None]] = {}
        self._first: dict[str, Ref] = {}
        self._doomed: set[str] = set()
        self._abandoned: set[str] = set()

    def put(self, ref: Ref, metadata: ObjectMetadata) -> None:
        """Process the present metadata of an object."""
        set_id = metadata.set_id
        if self._of.get(ref, "") != set_id:
            self.drop(ref)
            self._of[ref] = set_id
            self._members.setdefault(set_id, {})[ref] = None
            if set_id in self._abandoned:
                self._changed(ref)
        if metadata.is_unfinished:
            self._first[set_id] = ref
            if metadata.is_abandoned:
                self.abandon(set_id)
        elif self._first.get(set_id) == ref:  # Its last write has finished the set.
            del self._first[set_id]
            self.forget(set_id)

    def drop(self, ref: Ref) -> None:
        """Drop a deleted object."""
        set_id = self._of.pop(ref, "")
        members = self._members.get(set_id, {})
        members.pop(ref, None)
        if self._first.get(set_id) == ref:
            del self._first[set_id]
            if set_id in self._doomed:  # Without its first member the set cannot be finished.
                self._abandoned.add(set_id)
        if not members:
            self._members.pop(set_id, None)
            if set_id not in self._doomed:
                self._abandoned.discard(set_id)
        if set_id in self._abandoned:
            self._touch(set_id)

    def doom(self, set_id: str) -> None:
        """Request that a set be abandoned, unless it is finished before."""
        self._doomed.add(set_id)
        if first := self._first.get(set_id):
            self._changed(first)

    def abandon(self, set_id: str) -> None:
        """Mark a set for deletion: its present members, and members that appear later."""
        if set_id not in self._abandoned:
            self._abandoned.add(set_id)
            self._touch(set_id)

    def forget(self, set_id: str) -> None:
        """Drop the state of a set that is finished or completely deleted."""
        self._doomed.discard(set_id)
        self._abandoned.discard(set_id)

    def has(self, set_id: str) -> bool:
        """Return whether a member of a set is cached."""
        return set_id in self._members

    def is_doomed(self, set_id: str) -> bool:
        """Return whether a set is being rolled back."""
        return set_id in self._doomed or set_id in self._abandoned

    def is_abandoned(self, set_id: str) -> bool:
        """Return whether a set cannot be finished any more, so that its members may be deleted."""
        return set_id in self._abandoned

    def may_go(self, metadata: ObjectMetadata) -> bool:
        """Return whether a member of an abandoned set may be deleted.

        The first member goes last: its annotation lets the next process continue the deletion.
        """
        return not metadata.is_unfinished or len(self._members[metadata.set_id]) == 1

    def _touch(self, set_id: str) -> None:
        for ref in tuple(self._members.get(set_id, ())):
            self._changed(ref)
