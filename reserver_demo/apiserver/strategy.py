"""The strategy of a resource for writes (`rest.RESTCreateUpdateStrategy`)."""

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
    """The parts of writes that differ between resources.

    Attributes:
        admit: changes or refuses a new object.
        prepare_create: fills in and clears fields of a new object.
        prepare_update: restores the fields that an update (new, old) must not change.
        prepare_status: the same for an update through the status subresource.
        check: yields the problems of an object.
        check_update: yields the problems of an update (new, old).
        grace: returns the seconds until a deletion is final, from the object and the requested
            seconds; None if deletion is always immediate.
        returns_deleted: whether a deletion returns the object instead of a Status.
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
    """Restore a top-level field of the new object from the old one."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def show_times(status: Json, *fields: str) -> None:
    """Set absent times in the conditions of a status to null: Go never omits them."""
    for condition in status.get("conditions", ()):
        for name in fields:
            condition.setdefault(name, None)
