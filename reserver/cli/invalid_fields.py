"""Invalid fields of files, as `reserver validate` reports them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import HOME, check_memory
from reserver.reservations.reservation import Reservation
from reserver.stores.entries import Entries


@dataclass(frozen=True, slots=True)
class InvalidField:
    """An invalid field.

    Attributes:
        document: ``FILE`` or ``FILE:NUMBER``.
        key: the data key of a ConfigMap; else empty.
        field: the path of the field; empty for the whole document.
        problem: the problem, with the value quoted.
        remedy: the text to write instead.
    """

    document: str
    key: str
    field: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Return one line."""
        where = ": ".join(filter(None, (self.document, self.key, self.field)))
        return f"{where}: {self.problem}; {self.remedy}"


def is_over(reservation: Reservation, now: float) -> bool:
    """Return whether a reservation has expired at `now` (unix seconds)."""
    return reservation.expires_at is not None and reservation.expires_at <= now


def expired(where: str, key: str, reservation: Reservation) -> InvalidField:
    """Return the field that says when a reservation expired."""
    item = reservation.ref.item
    path = f"[{item}].expire" if item else "expiresAt" if key else "spec.expiresAt"
    problem = "lies in the past, so nothing is held"
    return InvalidField(where, key, path, problem, "write a time in the future")


def unmeant(where: str, key: str, found: Iterable[Reservation]) -> Iterator[InvalidField]:
    """Yield items of lists with an amount that nobody means; Reserver itself holds it as ever."""
    for each in found:
        memory = each.resources.get("memory", 0) if each.ref.item else 0
        try:
            check_memory(memory, str(memory), f"[{each.ref.item}]: memory", HOME.least_memory)
        except InvalidInput as exc:
            yield InvalidField(where, key, exc.path, exc.problem, "write bytes: 4Gi is 4294967296")


def problems(where: str, key: str, entries: Entries) -> Iterator[InvalidField]:
    """Yield what Reserver refuses of a data key or an object."""
    for each in entries.problems:
        yield InvalidField(where, key, each.error.path, each.error.problem, each.error.remedy)
    if entries.more_problems:
        more = f"{entries.more_problems} more items are broken"
        yield InvalidField(where, key, "", more, "correct those above first")
