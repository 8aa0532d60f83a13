"""What the companion of a store ConfigMap says of each of the store's keys, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from reserver.errors import InvalidInput
from reserver.reservations.reservation import Phase, Reservation
from reserver.reservations.status import Status
from reserver.wire.objects import decode, encode
from reserver.wire.store import Entries

INVALID = "Invalid"
"""The phase of an entry that is not enforced because it cannot be."""


class EntryStatus(msgspec.Struct):
    """The status of one entry; `digest` tells which reservation it is about."""

    phase: str
    backed: bool
    digest: str
    message: str = ""


def show(entries: Entries, status: Callable[[Reservation], Status]) -> str:
    """Return the status of one data key.

    A broken item of a list stands under its index, ``[3]``: its pod may not be readable, or be that
    of another item.
    """
    problems = entries.problems
    if len(problems) == 1 and not problems[0].error.path.startswith("["):
        return _text(_invalid(str(problems[0].error)))
    said = {r.ref.item: _entry(r, status(r)) for r in entries.reservations}
    if "" in said:
        return _text(said[""])
    for problem in problems:
        index = problem.error.path.partition("]")[0] + "]"
        said[index] = _invalid(str(problem.error))
    if entries.more_problems:
        said["[…]"] = _invalid(f"{entries.more_problems} more items are broken")
    return _text(said)


def without_messages(text: str) -> str:
    """Return a key's status without its messages, for where there is no room for them."""
    if '"message"' not in text:
        return text
    try:
        status: dict[str, object] = decode(dict, text.encode())
    except InvalidInput:
        return text  # Not written by us.
    for entry in (status, *status.values()):
        if isinstance(entry, dict):
            entry.pop("message", None)
    return _text(status)


def newly_unbacked(before: str | None, after: str | None) -> Iterator[tuple[str, EntryStatus]]:
    """Yield the items of a key whose hold is not backed and was not said to be so before.

    A node that has gone is news also where the room was taken before.

    Args:
        before: what was written, None if nothing was.
        after: what is to be written now.

    Yields:
        The item, empty for a key that is one reservation, and its status now.
    """
    known = {(item, entry.phase) for item, entry in _entries(before) if _is_unbacked(entry)}
    for item, entry in _entries(after):
        if _is_unbacked(entry) and (item, entry.phase) not in known:
            yield item, entry


def _entry(reservation: Reservation, status: Status) -> EntryStatus:
    return EntryStatus(status.phase.value, status.is_backed, reservation.digest, status.message)


def _invalid(message: str) -> EntryStatus:
    return EntryStatus(INVALID, backed=False, digest="", message=message)


def _text(status: object) -> str:
    return encode(status).decode()


def _entries(text: str | None) -> Iterator[tuple[str, EntryStatus]]:
    if text is None or '"backed":false' not in text:
        return  # Spares most of the reading: only what is not backed is looked for.
    try:
        if text.startswith('{"phase":'):
            yield "", decode(EntryStatus, text.encode())
        else:
            yield from decode(dict[str, EntryStatus], text.encode()).items()
    except InvalidInput:
        return  # Not written by us.


def _is_unbacked(entry: EntryStatus) -> bool:
    return entry.phase in {Phase.ACTIVE, Phase.FAILED} and not entry.backed
