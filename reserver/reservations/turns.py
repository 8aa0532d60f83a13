"""The turns of a reservation among the holds of a node, which an edit may keep."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.reservations.account import Account
from reserver.reservations.reservation import Reservation, Written


def kept_turns(
    after: Reservation, before: Account | None, *, is_same: bool
) -> Mapping[str, Written]:
    """Return the turns that a reservation takes over from what stood at its ref, if anything did.

    It does where it holds no more than that still did at this moment, claimed slots aside: what
    was written meanwhile may have been told that it has the rest. One that yielded stood behind all
    that did not, and does not come to stand before them by an edit. What is the same keeps them,
    and so does what was written elsewhere as well, which stands on.
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
