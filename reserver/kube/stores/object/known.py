"""One Reservation object as it was last read, and one that is being written."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.reservations.reservation import Reservation
from reserver.wire.spec.entries import Entries
from reserver.wire.spec.object import ObjectMetadata, ReservationObject, ReservationStatus


@dataclass(slots=True)
class Known:
    """One Reservation as it was last read."""

    metadata: ObjectMetadata
    path: str
    spec: bytes
    entries: Entries
    said: ReservationStatus | None
    is_read: bool = True
    """False for one of too many in its namespace: nothing is kept of its spec."""

    def is_of(self, item: ReservationObject) -> bool:
        """Return whether an object as it is now says the same in its spec."""
        return self.metadata.uid == item.metadata.uid and self.spec == bytes(item.spec)

    @property
    def reservation(self) -> Reservation | None:
        """What it says; None where it is not enforced."""
        return next(iter(self.entries.reservations), None)

    @property
    def text(self) -> str:
        """Its spec, as the API server writes it."""
        return self.spec.decode(errors="replace")


@dataclass(slots=True)
class Expected:
    """An object that is being written and that no watch has shown yet."""

    text: str
    entries: Entries
    set_id: str
    uid: str = ""
    """Of what was written; empty until that is known."""
    gone_at: int = 0
    """A resourceVersion at which there was none, as far as that is known."""
