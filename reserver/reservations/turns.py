"""Turns: the moments of starts and ends, and the order of holds on a node."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from reserver.reservations.account import Account
from reserver.reservations.leaving import turns_on
from reserver.reservations.reservation import Reservation, Written

Turn = tuple[float, int, str]
"""A moment in unix seconds, and the order and identity of the account."""


def turns(account: Account, now: float) -> Iterator[Turn]:
    """Yield the moments after `now` at which a reservation starts and ends."""
    for at in (account.reservation.starts_at, account.reservation.expires_at, account.idle_until):
        if at is not None and now < at < math.inf:
            yield (at, account.order, account.identity)


def kept_turns(
    after: Reservation, before: Account | None, *, is_same: bool
) -> Mapping[str, Written]:
    """Return the turns that a reservation takes over from the former entry of its ref.

    It keeps a node's turn if it holds no more there than the former one's unclaimed slots: the rest
    may back later reservations. A preemptible hold was behind all firm holds, and an edit does not
    move it ahead of them. An unchanged reservation keeps its turns. If the former reservation has a
    copy elsewhere, the copy keeps them.
    """
    if before is None or is_same:
        return turns_on(before.holds) if before else {}
    if len(before.entries) > 1:
        return {}
    kept, holds = {}, before.by_node()
    for part in after.parts:
        hold = holds.get(part.node)
        if hold is None or (hold.yields and after.yields_above is None):
            continue
        if all(n * part.slots <= hold.amounts.get(name, 0) for name, n in after.resources.items()):
            kept[part.node] = hold.since
    return kept
