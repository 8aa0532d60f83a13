"""Reads Reservation objects, up to a bound for each namespace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from reserver.base.quarantine import quarantined
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_OBJECTS
from reserver.reservations.reservation import Reservation
from reserver.stores.configmap.entries import Entries, EntryProblem
from reserver.stores.configmap.status_codec import INVALID
from reserver.stores.object.codec import ObjectMetadata, ReservationObject, ReservationStatus
from reserver.stores.object.entries import read_object


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
