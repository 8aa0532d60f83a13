"""The lent part of holds, and the borrowed part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hack.promises.amounts import Amounts
from hack.promises.pods import Pod


def unborrowed(
    held: Mapping[str, Amounts],
    lent_below: Mapping[str, int],
    borrowers: Iterable[tuple[Pod, Amounts]],
) -> dict[str, dict[str, int]]:
    """Return the held resources without the most that borrowers may use, by entry.

    A borrower of one hold may also borrow from every hold with a higher limit. So holds with the
    lowest limit are used up first, which borrows the most.

    Args:
        held: by name.
        lent_below: pods of a lower priority than this may borrow it, by name.
        borrowers: pods that may be recalled, with what they take.
    """
    left = {name: dict(amounts) for name, amounts in held.items()}
    waiting = sorted(borrowers, key=lambda each: each[0].priority, reverse=True)
    asked: dict[str, int] = {}
    for name in sorted(lent_below.keys() & held.keys(), key=lambda each: lent_below[each]):
        while waiting and waiting[-1][0].priority < lent_below[name]:
            for resource, amount in waiting.pop()[1].items():
                asked[resource] = asked.get(resource, 0) + amount
        for resource, amount in left[name].items():
            taken = min(amount, asked.get(resource, 0))
            left[name][resource] = amount - taken
            asked[resource] = asked.get(resource, 0) - taken
    return left
