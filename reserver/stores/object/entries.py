"""Reads Reservation objects as entries of the store, up to a bound for each namespace; and sets.

The API server writes one object at a time. So the first member of a set says that the set is
unfinished until all are written. The next Reserver to start dooms such a set: it has the first
member say that it is abandoned, which excludes that it is finished, and then deletes all that
belongs to it (docs/adr/0012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from reserver.base.quarantine import quarantined
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import KEPT, MOST_OBJECTS, SpecLimits, check_bytes, limits_at
from reserver.k8s.objects.times import parse_moment
from reserver.reservations.enums import Phase
from reserver.reservations.placement import Placement, clipped
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document, newer_fields, placement_codec
from reserver.stores.codec.placement_codec import read_parts
from reserver.stores.configmap.entries import Entries, EntryProblem
from reserver.stores.configmap.status_codec import INVALID
from reserver.stores.object.codec import (
    PLACEMENT_ANNOTATION,
    ObjectMetadata,
    ReservationObject,
    ReservationStatus,
)


def read_object(item: ReservationObject, seen_at: float, home: str) -> Entries:
    """Return what a Reservation says.

    Unlike a data key it knows when it was created: a ``ttl`` counts from there, and nothing has to
    be written down.

    Args:
        item: the object.
        seen_at: unix seconds; from when a ``ttl`` counts if it does not say when it was created.
        home: Reserver's own namespace (`limits_at`).
    """
    ref, said, beyond = item.ref, item.said(), ""
    try:
        reservation, ignored = _read(item, seen_at, limits_at(ref, home))
    except InvalidInput as exc:
        problems = (EntryProblem(ref, exc.under("spec")),)
        if said is None or not _was_in_force(item, said):
            return Entries(problems=problems)
        try:
            (reservation, ignored), beyond = _read(item, seen_at, KEPT), str(exc.under("spec"))
        except InvalidInput:
            return Entries(problems=problems)
    reservation = replace(
        reservation,
        # A later object of the same name is another reservation.
        origin=reservation.origin or f"{ref}#{item.metadata.uid}",
        created_at=_created(item, 0.0),
        is_seat=item.metadata.is_seat,
        volume_claims=item.metadata.volume_claims,
        fallback=_fallback(item, limits_at(ref, home)),
    )
    return Entries((with_placements(reservation, said),), beyond=beyond, ignored=ignored)


def _read(item: ReservationObject, seen_at: float, limits: SpecLimits) -> tuple[Reservation, str]:
    """Return what it says, and what is ignored of it: no field that its CRD has is misspelt."""
    check_bytes(len(item.spec), limits.spec_bytes)
    spec = document.parse(_text(item.spec))
    return newer_fields.read(spec, item.ref, _created(item, seen_at), limits, was_in_force=True)


def _was_in_force(item: ReservationObject, said: ReservationStatus) -> bool:
    """Return whether its status, which only Reserver writes, says that this very spec was read."""
    return said.observed_generation == item.metadata.generation and said.phase != Phase.INVALID


def _fallback(item: ReservationObject, limits: SpecLimits) -> Placement | None:
    """Return where the pod of a seat may be; None for what is no seat, or does not say it."""
    written = (item.metadata.annotations or {}).get(PLACEMENT_ANNOTATION)
    if not item.metadata.is_seat or written is None or len(written) > limits.spec_bytes:
        return None
    try:
        return placement_codec.read(document.parse(written), item.metadata.namespace, limits)
    except InvalidInput:
        return None  # Not written by us.


def with_placements(reservation: Reservation, said: ReservationStatus | None) -> Reservation:
    """Return a reservation placed where its status says, if Reserver chooses its node."""
    if reservation.node:
        return reservation
    try:
        parts = read_parts(said.placements) if said else ()
    except InvalidInput:
        parts = ()  # Not written by us.
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
    """One Reservation as it was last read.

    Attributes:
        said: what its status says; None where nothing does, or somebody else wrote it.
        is_read: False for one of too many in its namespace: nothing is kept of its spec.
    """

    metadata: ObjectMetadata
    spec: bytes
    entries: Entries
    said: ReservationStatus | None
    is_read: bool = True

    def is_of(self, item: ReservationObject) -> bool:
        """Return whether an object still has the same spec."""
        return self.metadata.uid == item.metadata.uid and self.spec == bytes(item.spec)

    @property
    def reservation(self) -> Reservation | None:
        """What it says; None where it is not enforced."""
        return next(iter(self.entries.reservations), None)

    @property
    def text(self) -> str:
        """Its spec, as the API server writes it."""
        return self.spec.decode(errors="replace")


class ObjectReading:
    """Reads objects; of a namespace other than Reserver's own `MOST_OBJECTS` at most."""

    def __init__(self, clock: Callable[[], float], home: str) -> None:
        """Read at the time of a clock, in unix seconds; `home` is Reserver's own namespace."""
        self._clock = clock
        self._home = home
        self._read_in: dict[str, int] = {}

    def entries(self, item: ReservationObject) -> Entries:
        """Return what an object says."""
        return read_object(item, self._clock(), self._home)

    def read(self, item: ReservationObject, before: KnownObject | None) -> KnownObject:
        """Return an object as it is now, instead of what was known of it before.

        An object that was read before, even by an earlier process, is read again: it may hold.
        """
        known = self._read(item, before)
        self._count(
            item.metadata.namespace, known.is_read - (before is not None and before.is_read)
        )
        return known

    def forget(self, namespace: str, known: KnownObject) -> None:
        """Note that an object is gone."""
        self._count(namespace, -known.is_read)

    def _read(self, item: ReservationObject, before: KnownObject | None) -> KnownObject:
        said, namespace = item.said(), item.metadata.namespace
        is_full = self._read_in.get(namespace, 0) >= MOST_OBJECTS and namespace != self._home
        was_read = (before is not None and before.is_read) or (
            said is not None and said.phase != INVALID
        )
        if is_full and not was_read:
            text = f"{MOST_OBJECTS} Reservations of this namespace are read, and this one is not"
            error = InvalidInput("", text, "delete some, and write it again")
            unread = Entries(problems=(EntryProblem(item.ref, error),))
            return KnownObject(item.metadata, b"", unread, said, is_read=False)
        entries = before.entries if before else Entries()
        with quarantined("store", item.ref) as told:  # What it said before stays if this raises.
            entries = self.entries(item)
        if told:
            entries = replace(entries, problems=(EntryProblem(item.ref, told[0]),))
        return KnownObject(item.metadata, bytes(item.spec), entries, said)

    def _count(self, namespace: str, more: int) -> None:
        self._read_in[namespace] = self._read_in.get(namespace, 0) + more
        if not self._read_in[namespace]:
            del self._read_in[namespace]


class Sets:
    """The sets of the objects that are known, and those that are being taken back."""

    def __init__(self, changed: Callable[[Ref], None]) -> None:
        """Tell `changed` of members that may have to be written or deleted."""
        self._changed = changed
        self._of: dict[Ref, str] = {}
        self._members: dict[str, dict[Ref, None]] = {}
        self._first: dict[str, Ref] = {}
        self._doomed: set[str] = set()
        self._abandoned: set[str] = set()

    def put(self, ref: Ref, metadata: ObjectMetadata) -> None:
        """Take an object as it is now."""
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
        elif self._first.get(set_id) == ref:  # That was the last write: the set stays.
            del self._first[set_id]
            self.forget(set_id)

    def drop(self, ref: Ref) -> None:
        """Forget an object that is gone."""
        set_id = self._of.pop(ref, "")
        members = self._members.get(set_id, {})
        members.pop(ref, None)
        if self._first.get(set_id) == ref:
            del self._first[set_id]
            if set_id in self._doomed:  # Nobody can finish it any more.
                self._abandoned.add(set_id)
        if not members:
            self._members.pop(set_id, None)
            if set_id not in self._doomed:
                self._abandoned.discard(set_id)
        if set_id in self._abandoned:
            self._touch(set_id)

    def doom(self, set_id: str) -> None:
        """Have a set abandoned, unless it is finished before."""
        self._doomed.add(set_id)
        if first := self._first.get(set_id):
            self._changed(first)

    def abandon(self, set_id: str) -> None:
        """Delete a set that nobody can finish: its members that are known, and that come."""
        if set_id not in self._abandoned:
            self._abandoned.add(set_id)
            self._touch(set_id)

    def forget(self, set_id: str) -> None:
        """Note that a set is finished; or nothing is left of it, and no member will come."""
        self._doomed.discard(set_id)
        self._abandoned.discard(set_id)

    def has(self, set_id: str) -> bool:
        """Return whether some member of a set is known."""
        return set_id in self._members

    def is_doomed(self, set_id: str) -> bool:
        """Return whether a set is to be taken back, or already is."""
        return set_id in self._doomed or set_id in self._abandoned

    def is_abandoned(self, set_id: str) -> bool:
        """Return whether a set can be finished no more, so that its members may be deleted."""
        return set_id in self._abandoned

    def may_go(self, metadata: ObjectMetadata) -> bool:
        """Return whether a member of an abandoned set may be deleted now.

        The first goes last: it says that the set is unfinished, should this process end.
        """
        return not metadata.is_unfinished or len(self._members[metadata.set_id]) == 1

    def _touch(self, set_id: str) -> None:
        for ref in tuple(self._members.get(set_id, ())):
            self._changed(ref)
