"""The entries of a data key or of a Reservation, and the problems of broken ones."""

from __future__ import annotations

from dataclasses import dataclass

from reserver.errors import Fault, InvalidInput
from reserver.printable import printable
from reserver.reservations.reservation import Ref, Reservation


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """The reason for not enforcing an entry.

    Attributes:
        ref: the ref of the entry; its `item` is empty.
        error: field, problem and remedy.
    """

    ref: Ref
    error: InvalidInput

    def __str__(self) -> str:
        """Return one line for an event or a log."""
        return f"{printable(self.ref.key)}: {self.error}"


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of one data key, and their errors.

    Attributes:
        reservations: the enforced entries.
        problems: the first `MOST_PROBLEMS` problems of the other entries.
        more_problems: the number of further problems.
        unstamped: whether it has a ttl but no ``expiresAt``, so that the next start of Reserver
            could not compute its expiry (`entry_edits.complete`).
        beyond: the bound exceeded by an entry that is enforced because it was before; else empty.
        ignored: a line about the fields of a newer version; empty without such fields.
    """

    reservations: tuple[Reservation, ...] = ()
    problems: tuple[EntryProblem, ...] = ()
    more_problems: int = 0
    unstamped: bool = False
    beyond: str = ""
    ignored: str = ""

    @property
    def has_faults(self) -> bool:
        """Whether reading some entry raised an unexpected exception."""
        return any(isinstance(problem.error, Fault) for problem in self.problems)

    def has_same_reservations(self, other: Entries) -> bool:
        """Return whether both have the same reservations, regardless of their placements."""
        own = [reservation.edition for reservation in self.reservations]
        return own == [reservation.edition for reservation in other.reservations]


MOST_PROBLEMS = 100
"""Most broken entries of one key that are reported one by one."""
