"""The identity of a reservation, which survives edits of its layout (docs/adr/0001)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from cachetools import LRUCache

if TYPE_CHECKING:
    from reserver.reservations.owner import OwnerRule
    from reserver.reservations.reservation import Reservation

_near: LRUCache[tuple[str, int], frozenset[str]] = LRUCache(256)
_LENGTH = 16


def digest(reservation: Reservation) -> str:
    """Return a hash of what a reservation says, regardless of how it is written."""
    head, tail = _text(reservation)
    return _hash(head, reservation.expires_at, tail)


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


def _hash(head: str, expires_at: float | None, tail: str) -> str:
    text = f"{head}{json.dumps(expires_at)}{tail}"
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _text(reservation: Reservation) -> tuple[str, str]:
    """Return what is hashed before and after the moment at which it expires."""
    head: list[object] = [
        reservation.node,
        sorted(reservation.owners),
        sorted(reservation.resources.items()),
        reservation.slots,
        reservation.starts_at,
    ]
    tail: list[object] = [reservation.policy]
    # Without these the digest is what it was before there were these.
    if reservation.yields_above is not None:
        tail.append(reservation.yields_above)
    if reservation.rules or reservation.reusable:
        tail.append([sorted(map(_said, reservation.rules)), reservation.reusable])
    if reservation.placement.text:
        tail.append({"placement": reservation.placement.text})
    return f"{json.dumps(head)[:-1]}, ", f", {json.dumps(tail)[1:]}"


def _said(rule: OwnerRule) -> list[object]:
    terms = [(t.key, t.operator, sorted(t.values)) for t in rule.selector.requirements]
    said: list[object] = [rule.namespace, rule.pod, *rule.controller, sorted(terms)]
    replaces = rule.replaces
    return [*said, replaces.uid, sorted(replaces.existing)] if replaces.uid else said
