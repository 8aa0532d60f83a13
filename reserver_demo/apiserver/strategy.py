"""What differs between resources when they are written (`rest.RESTCreateUpdateStrategy`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reserver_demo.apiserver.status import Cause, Json

Lookup = Callable[[str], Iterable[Json]]
"""Returns the objects of another resource, by its plural."""


def _nothing(*_: object) -> None:
    pass


def _no_causes(*_: object) -> Iterable[Cause]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What differs between resources when they are written.

    Attributes:
        admit: changes an object that is being created, or refuses it.
        prepare_create: fills in and clears fields of an object that is being created.
        prepare_update: takes back what an update of (new, old) may not touch.
        prepare_status: the same for an update through the status subresource.
        check: yields what is wrong with an object.
        check_update: yields what is wrong with an update of (new, old).
        grace: seconds until a deletion is final, from the object and the seconds asked for;
            None where deletion is always immediate.
        returns_deleted: whether a deletion is answered with the object instead of a Status.
    """

    admit: Callable[[Json, Lookup], None] = _nothing
    prepare_create: Callable[[Json], None] = _nothing
    prepare_update: Callable[[Json, Json], None] = _nothing
    prepare_status: Callable[[Json, Json], None] | None = None
    check: Callable[[Json], Iterable[Cause]] = _no_causes
    check_update: Callable[[Json, Json], Iterable[Cause]] = _no_causes
    grace: Callable[[Json, int | None], int] | None = None
    returns_deleted: bool = False


def keep(field: str, new: Json, old: Json) -> None:
    """Let a top-level field of the new object be as it was in the old one."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def show_times(status: Json, *fields: str) -> None:
    """Let the conditions of a status say null where they have no time: Go never omits those."""
    for condition in status.get("conditions", ()):
        for name in fields:
            condition.setdefault(name, None)
