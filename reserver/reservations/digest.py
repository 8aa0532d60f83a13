"""Digests of reservations, which change with their specs, and marks of pods.

A mark is a hash of a pod's UID in eight characters, for records of so many claims that UIDs would
take too much space. Two pods have the same mark with a probability of 2^-48. A claim is found by
the pod's UID or by its mark (`Account.claimant`).
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

from cachetools import LRUCache

from reserver.reservations.owner import OwnerRule
from reserver.reservations.recurrence import series_digest
from reserver.reservations.reservation import Reservation

_ANY_TIME = "*"
"""Replaces the expiry in the digest that does not change with it."""

_near: LRUCache[tuple[str, int], frozenset[str]] = LRUCache(256)
_DIGEST_LENGTH = 16


def is_called(reservation: Reservation, text: str) -> bool:
    """Return whether a text is a reservation's digest, also as another process computed it."""
    is_near = reservation.drift > 0 and text in near_digests(reservation)
    return text in (reservation.digest, reservation.lasting or reservation.digest) or is_near


def other_digests(reservation: Reservation) -> frozenset[str]:
    """Return the other digests that claims may use, by another or an older Reserver."""
    own = reservation.lasting or reservation.digest
    others = near_digests(reservation) if reservation.drift else frozenset({reservation.digest})
    return others - {own}


def etag(reservation: Reservation) -> str:
    """Return a text that changes with the spec, including the recurrence."""
    recurrence = reservation.recurrence
    if recurrence is None:
        return reservation.digest
    said = json.dumps([recurrence.schedule._asdict(), *recurrence[1:]])
    again = hashlib.sha256(said.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{series_digest(reservation.digest)}-{again}"


def equals(after: Reservation, before: Reservation) -> bool:
    """Return whether two reservations are equal, apart from when a ``ttl`` was computed."""
    if after.record != before.record:
        return False
    return is_called(before, after.digest) or is_called(after, before.digest)


def digest(reservation: Reservation) -> str:
    """Return a hash of a reservation's spec, regardless of its format."""
    head, tail = _text(reservation)
    return _hash(head, None if reservation.recurrence else reservation.expires_at, tail)


def lasting_digest(reservation: Reservation) -> str:
    """Return the digest of a reusable reservation without its expiry; empty for others.

    A reusable slot comes back when its pod goes, so a claim that outlasts an extension loses no
    room (docs/adr/0090). The digest of a recurring reservation has no expiry anyway.
    """
    if not reservation.reusable or reservation.recurrence is not None:
        return ""
    head, tail = _text(reservation)
    return _hash(head, _ANY_TIME, tail)


def near_digests(reservation: Reservation) -> frozenset[str]:
    """Return the digests for each expiry within the drift, as other processes may compute it."""
    key = (reservation.digest, reservation.drift)
    known = _near.get(key)
    if known is None:
        head, tail = _text(reservation)
        at, drift = reservation.expires_at or 0.0, reservation.drift
        known = frozenset(_hash(head, at + s, tail) for s in range(-drift, drift + 1))
        _near[key] = known
    return known


def _hash(head: str, expires_at: float | str | None, tail: str) -> str:
    text = f"{head}{json.dumps(expires_at)}{tail}"
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def _text(reservation: Reservation) -> tuple[str, str]:
    """Return the texts that are hashed before and after the expiry."""
    head: list[object] = [
        reservation.node,
        sorted(reservation.owners),
        sorted(reservation.resources.items()),
        reservation.slots,
        None if reservation.recurrence else reservation.starts_at,
    ]
    tail: list[object] = [reservation.policy]
    # An unset field adds nothing, so digests from before the field existed stay valid.
    if reservation.yields_above is not None:
        tail.append(reservation.yields_above)
    if reservation.rules or reservation.reusable:
        tail.append([sorted(map(_said, reservation.rules)), reservation.reusable])
    if reservation.refill_up_to:
        tail.append({"refillUpTo": reservation.refill_up_to})
    if reservation.release_if_idle:
        tail.append({"releaseIfIdle": reservation.release_if_idle})
    if reservation.lends_below is not None:
        tail.append({"lendsBelow": reservation.lends_below})
    if (comes := reservation.recurrence) is not None:  # Skipped occurrences do not count.
        when = comes.schedule
        tail.append({"recurs": [when.cron, when.duration, when.zone, comes.lead]})
    if reservation.placement.text:
        tail.append({"placement": reservation.placement.text})
    return f"{json.dumps(head)[:-1]}, ", f", {json.dumps(tail)[1:]}"


def _said(rule: OwnerRule) -> list[object]:
    terms = [(t.key, t.operator, sorted(t.values)) for t in rule.selector.requirements]
    said: list[object] = [rule.namespace, rule.pod, *rule.controller, sorted(terms)]
    replaces = rule.replaces
    return [*said, replaces.uid, sorted(replaces.existing)] if replaces.uid else said


_SIGN = "~"
"""The first character of a mark; no pod's UID begins with it."""

_LENGTH = 8


@lru_cache(maxsize=100_000)  # Each mark is read at each write of the record.
def mark(pod_uid: str) -> str:
    """Return the mark of a pod's UID; a mark is returned unchanged."""
    if is_mark(pod_uid):
        return pod_uid
    return _SIGN + urlsafe_b64encode(blake2b(pod_uid.encode(), digest_size=6).digest()).decode()


def is_mark(text: str) -> bool:
    """Return whether a text is a mark, not a UID."""
    return text.startswith(_SIGN)


def joined_marks(pods: Iterable[str]) -> str:
    """Return the sorted marks of pods as one text."""
    return "".join(sorted(mark(each)[1:] for each in pods))


def parted_marks(text: str) -> Iterator[str]:
    """Yield the marks of a text from `joined_marks`."""
    for start in range(0, len(text) - _LENGTH + 1, _LENGTH):
        yield _SIGN + text[start : start + _LENGTH]
