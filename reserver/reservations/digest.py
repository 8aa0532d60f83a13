"""Digests: of a reservation, to tell it from what was written there before, and marks of pods.

A mark is a pod in eight characters, for records of so many claims that UIDs would take too much.
Two pods have the same mark once in 2^48. A claim that is known by its mark alone is as good as one
that is known by its UID: whoever asks for a pod's is found by either (`Account.claimant`).
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
"""Instead of an expiry, in the digest that outlasts a change of that."""

_near: LRUCache[tuple[str, int], frozenset[str]] = LRUCache(256)
_DIGEST_LENGTH = 16


def is_called(reservation: Reservation, text: str) -> bool:
    """Return whether this is its digest, or the one that another Reserver computed."""
    is_near = reservation.drift > 0 and text in near_digests(reservation)
    return text in (reservation.digest, reservation.lasting or reservation.digest) or is_near


def other_digests(reservation: Reservation) -> frozenset[str]:
    """Return by what else claims may call it: another Reserver, or an older one, wrote them."""
    own = reservation.lasting or reservation.digest
    others = near_digests(reservation) if reservation.drift else frozenset({reservation.digest})
    return others - {own}


def etag(reservation: Reservation) -> str:
    """Return a text that changes with what is written, also with when it recurs."""
    recurrence = reservation.recurrence
    if recurrence is None:
        return reservation.digest
    said = json.dumps([recurrence.schedule._asdict(), *recurrence[1:]])
    again = hashlib.sha256(said.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{series_digest(reservation.digest)}-{again}"


def equals(after: Reservation, before: Reservation) -> bool:
    """Return whether one equals another, apart from when a ``ttl`` was computed."""
    if after.record != before.record:
        return False
    return is_called(before, after.digest) or is_called(after, before.digest)


def digest(reservation: Reservation) -> str:
    """Return a hash of what a reservation says, regardless of how it is written."""
    head, tail = _text(reservation)
    return _hash(head, None if reservation.recurrence else reservation.expires_at, tail)


def lasting_digest(reservation: Reservation) -> str:
    """Return the digest of what is reusable without its expiry; empty of anything else.

    A slot comes back with its pod, so a claim that outlasts an extension loses no room
    (docs/adr/0090). What recurs has no expiry in its digest anyway.
    """
    if not reservation.reusable or reservation.recurrence is not None:
        return ""
    head, tail = _text(reservation)
    return _hash(head, _ANY_TIME, tail)


def near_digests(reservation: Reservation) -> frozenset[str]:
    """Return the digests of Reservers that computed its expiry within the drift."""
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
    """Return what is hashed before and after the moment at which it expires."""
    head: list[object] = [
        reservation.node,
        sorted(reservation.owners),
        sorted(reservation.resources.items()),
        reservation.slots,
        None if reservation.recurrence else reservation.starts_at,
    ]
    tail: list[object] = [reservation.policy]
    # Without these the digest is what it was before there were these.
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
    if (comes := reservation.recurrence) is not None:  # Which ones are left out is not part of it.
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
"""Begins a mark; no UID of a pod does."""

_LENGTH = 8


@lru_cache(maxsize=100_000)  # Each is asked for whenever the record is written.
def mark(pod_uid: str) -> str:
    """Return the mark of a pod; a mark is its own."""
    if is_mark(pod_uid):
        return pod_uid
    return _SIGN + urlsafe_b64encode(blake2b(pod_uid.encode(), digest_size=6).digest()).decode()


def is_mark(text: str) -> bool:
    """Return whether something is a mark, and no UID."""
    return text.startswith(_SIGN)


def joined_marks(pods: Iterable[str]) -> str:
    """Return the marks of pods as one text, in their order."""
    return "".join(sorted(mark(each)[1:] for each in pods))


def parted_marks(text: str) -> Iterator[str]:
    """Yield the marks that were joined."""
    for start in range(0, len(text) - _LENGTH + 1, _LENGTH):
        yield _SIGN + text[start : start + _LENGTH]
