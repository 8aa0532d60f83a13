"""Turns: when a reservation starts and ends, and behind what it stands on a node."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from reserver.reservations.account import Account
from reserver.reservations.reservation import Reservation, Written

Turn = tuple[float, int, str]
"""A moment in unix seconds, the order of accounts, and whose it is."""


def turns(account: Account, now: float) -> Iterator[Turn]:
    """Yield the moments after `now` at which a reservation starts and ends."""
    for at in (account.reservation.starts_at, account.reservation.expires_at, account.idle_until):
        if at is not None and now < at < math.inf:
            yield (at, account.order, account.identity)


def kept_turns(
    after: Reservation, before: Account | None, *, is_same: bool
) -> Mapping[str, Written]:
    """Return the turns that a reservation takes over from what stood at its ref, if anything did.

    It does where it holds no more than that still did at this moment, claimed slots aside: what
    was written meanwhile may have been told that it has the rest. One that yielded stood behind all
    that did not, and does not come to stand before them by an edit. An unchanged reservation keeps
    its turn, and so does one with a copy elsewhere.
    """
    if before is None or is_same:
        return before.turns if before else {}
    if len(before.entries) > 1:
        return {}
    kept, holds = {}, before.by_node()
    for part in after.parts:
        hold = holds.get(part.node)
        here = after.on(part)
        if hold is None or (hold.yields and here.yields_above is None):
            continue
        if all(n * here.slots <= hold.amounts.get(name, 0) for name, n in here.resources.items()):
            kept[part.node] = hold.since
    return kept
