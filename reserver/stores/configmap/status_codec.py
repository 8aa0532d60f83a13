"""Reads and writes the status of an entry in a companion ConfigMap, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_CLAIMS_RECORDED
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.times import parse_moment, show_moment
from reserver.printable import printable
from reserver.reservations.digest import is_mark, joined_marks, parted_marks
from reserver.reservations.entry import EndedClaim
from reserver.reservations.enums import Phase
from reserver.reservations.outcome import LastStatus
from reserver.reservations.recurrence import occurrence_digest
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import (
    FIELDS_IGNORED,
    QUOTA_EXCEEDED,
    ReservationState,
    limit_of,
)
from reserver.stores.codec import lifetime_codec
from reserver.stores.codec.lifetime_codec import OccurrenceFields
from reserver.stores.entries import Entries

INVALID = Phase.INVALID.value
"""The phase of an invalid entry, which is not enforced."""


class EntryStatus(msgspec.Struct):
    """The status of one entry.

    `digest` identifies the reservation. `claims` are the UIDs of the pods that claimed a slot for
    good, each with a resourceVersion at which it had the slot: the next start has no other record
    of a deleted pod (`ledger.past.recall`). `landed` are their nodes, if the reservation is on
    several. `more` has the marks of further pods than `MOST_CLAIMS_RECORDED`, by node. `reason` is
    `QUOTA_EXCEEDED` or absent. `exceeds` is the limit exceeded by an entry that was admitted
    before; `ignored` names its fields of a newer version. `idle_since` is the start of the time
    without a pod, with releaseIfIdle. `occurrences` of a schedule: the occurrence of this status,
    and the next.
    """

    phase: str
    backed: bool
    digest: str
    message: str = ""
    claims: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    landed: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    more: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    exceeds: str | msgspec.UnsetType = msgspec.UNSET
    ignored: str | msgspec.UnsetType = msgspec.UNSET
    idle_since: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="idleSince")
    occurrences: list[OccurrenceFields] | msgspec.UnsetType = msgspec.UNSET

    def recorded(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the resourceVersions and the known nodes of the claims, by UID or mark."""
        claims, landed = dict(self.claims or {}), dict(self.landed or {})
        for node, marks in (self.more or {}).items():
            pods = dict.fromkeys(parted_marks(marks), node)
            claims |= dict.fromkeys(pods, 0)  # Marks have no resourceVersion.
            landed |= pods if node else {}
        return claims, landed


def show(entries: Entries, status: Callable[[Reservation], ReservationState | None]) -> str:
    """Return the status of one data key.

    A broken item of a list has its index as a name, ``[3]``: its pod may be unreadable, or repeat
    the pod of another item. An item without a status is left out: it is among the problems.
    """
    problems = entries.problems
    if len(problems) == 1 and not problems[0].error.path.startswith("["):
        return _text(_invalid(str(problems[0].error)))
    states = ((each, status(each)) for each in entries.reservations)
    shown = {each.ref.item: _entry(each, its, entries) for each, its in states if its is not None}
    if "" in shown:
        return _text(shown[""])
    for problem in problems:
        index = problem.error.path.partition("]")[0] + "]"
        shown[index] = _invalid(str(problem.error))
    if entries.more_problems:
        shown["[…]"] = _invalid(f"{entries.more_problems} more items are broken")
    return _text(shown)


def without_messages(text: str) -> str:
    """Return a key's status without its messages, to save room."""
    if '"message"' not in text:
        return text
    try:
        status: dict[str, object] = decode(dict, text.encode())
    except InvalidInput:
        return text  # Not written by Reserver.
    for entry in (status, *status.values()):
        if isinstance(entry, dict):
            entry.pop("message", None)
    return _text(status)


def newly_unbacked(before: str | None, after: str | None) -> Iterator[tuple[str, EntryStatus]]:
    """Yield the items of a key whose hold is not backed, and was not reported before.

    A deleted node is reported even if its room was taken before.

    Args:
        before: the former status of the key; None without one.
        after: the new status of the key.

    Yields:
        The item, empty for a key with one reservation, and its new status.
    """
    known = {(item, entry.phase) for item, entry in _entries(before) if _is_unbacked(entry)}
    for item, entry in _entries(after):
        if _is_unbacked(entry) and (item, entry.phase) not in known:
            yield item, entry


def violated(before: str | None, after: str | None) -> Iterator[str]:
    """Yield the items of a key whose hold has lost its room on an existing node.

    An entry that was edited in between counts as another reservation.
    """
    lacking = {
        item: entry.digest
        for item, entry in _entries(after)
        if entry.phase == Phase.ACTIVE and not entry.backed
    }
    for item, entry in _read(before) if lacking and before is not None else ():
        is_same = lacking.get(item) == entry.digest
        if is_same and entry.phase == Phase.ACTIVE and entry.backed:
            yield item


def records_claims(text: str) -> bool:
    """Return whether the status of a key may record claims."""
    return '"claims":{' in text


def admitted_items(text: str) -> Iterator[tuple[str, str]]:
    """Yield item and digest of each entry of a key that the quotas of its namespace admitted."""
    for item, entry in _read(text):
        if entry.phase != INVALID and entry.reason != QUOTA_EXCEEDED:
            yield item, entry.digest


def recorded_claims(text: str) -> Iterator[tuple[str, EntryStatus]]:
    """Yield item and status of each entry of a key with recorded claims."""
    if not records_claims(text):
        return
    for item, entry in _read(text):
        if entry.claims is not msgspec.UNSET:
            yield item, entry


def recorded_occurrences(text: str) -> Iterator[tuple[str, str, LastStatus]]:
    """Yield item, digest and last status of each recurring entry of a key."""
    for item, entry in _read(text) if '"occurrences":[' in text else ():
        if entry.occurrences:
            _, landed = entry.recorded()
            landed = dict.fromkeys(entry.claims or (), "") | landed
            claims = tuple(EndedClaim(uid, node=node) for uid, node in landed.items())
            shown = LastStatus(entry.occurrences[0].moments, entry.phase, claims)
            yield item, entry.digest, shown


def recorded_idle(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield item, digest and start (unix seconds) of the idle time of each idle entry."""
    for item, entry in _read(text) if '"idleSince"' in text else ():
        with suppress(InvalidInput):  # Not written by Reserver.
            if entry.idle_since:
                yield item, entry.digest, parse_moment(entry.idle_since)


def new_remarks(before: str | None, after: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield item, reason and message of newly exceeded limits and newly ignored fields."""
    known = {remark[:2] for remark in _remarks(before or "{}")}
    yield from (remark for remark in _remarks(after or "{}") if remark[:2] not in known)


def _remarks(text: str) -> Iterator[tuple[str, str, str]]:
    if '"exceeds"' in text or '"ignored"' in text:  # Most entries have neither.
        for item, entry in _read(text):
            if entry.exceeds:
                yield item, limit_of(entry.exceeds), entry.exceeds
            if entry.ignored:
                yield item, FIELDS_IGNORED, entry.ignored


def _entry(reservation: Reservation, status: ReservationState, entries: Entries) -> EntryStatus:
    pods = sorted(status.claims)  # Marks come last.
    claims = {uid: status.claims[uid] for uid in pods[:MOST_CLAIMS_RECORDED] if not is_mark(uid)}
    landed = {uid: status.landed[uid] for uid in claims if uid in status.landed}
    more: dict[str, list[str]] = {}
    for pod in pods[len(claims) :]:
        more.setdefault(status.landed.get(pod, ""), []).append(pod)
    return EntryStatus(
        status.phase.value,
        status.is_backed,
        _digest(reservation, status),
        printable(status.message),
        claims or msgspec.UNSET,
        landed or msgspec.UNSET,
        {node: joined_marks(marks) for node, marks in sorted(more.items())} or msgspec.UNSET,
        QUOTA_EXCEEDED if status.exceeds_quota else msgspec.UNSET,
        printable(status.exceeds or entries.beyond) or msgspec.UNSET,
        printable(entries.ignored) or msgspec.UNSET,
        show_moment(status.idle_since) if status.idle_since else msgspec.UNSET,
        lifetime_codec.show_occurrences(status.occurrences, reservation.recurrence)
        if reservation.recurrence
        else msgspec.UNSET,
    )


def _digest(reservation: Reservation, status: ReservationState) -> str:
    """Return the digest for a status: of the reservation, or of an occurrence if it recurs."""
    if not status.occurrences:
        return reservation.digest
    return occurrence_digest(reservation.digest, status.occurrences[0].start)


def _invalid(message: str) -> EntryStatus:
    return EntryStatus(INVALID, backed=False, digest="", message=printable(message))


def _text(status: object) -> str:
    return encode(status).decode()


def _entries(text: str | None) -> Iterator[tuple[str, EntryStatus]]:
    if text is not None and '"backed":false' in text:  # Callers need only unbacked entries.
        yield from _read(text)


def _read(text: str) -> Iterator[tuple[str, EntryStatus]]:
    try:
        if text.startswith('{"phase":'):
            yield "", decode(EntryStatus, text.encode())
        else:
            yield from decode(dict[str, EntryStatus], text.encode()).items()
    except InvalidInput:
        return  # Not written by Reserver.


def _is_unbacked(entry: EntryStatus) -> bool:
    return entry.phase in {Phase.ACTIVE, Phase.FAILED} and not entry.backed
