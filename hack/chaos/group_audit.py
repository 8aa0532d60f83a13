"""Comparison of Reserver's state with the groups' manager, once all has settled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from hack.chaos.book import Book
from hack.chaos.groups import Group, Groups
from hack.chaos.standing import Standing

_PHASES = ("Claimed", "Pending")


@dataclass(frozen=True)
class GroupRemains:
    """The reservations of groups, compared with the expected ones.

    Attributes:
        active: number of groups that hold room.
        violations: one line for each reservation that exists although it is over or that lacks
            claims, for each phase that Reserver counts differently, and for each pod that is
            pending although a slot for it is free.
    """

    active: int
    violations: tuple[str, ...]

    @classmethod
    def of(
        cls,
        found: Iterable[Standing],
        book: Book,
        groups: Groups,
        metric: Callable[[str], float],
    ) -> Self:
        """Compare; call it when the manager does not write any more.

        Args:
            found: the reservations in the stores.
            book: the pods on the nodes.
            groups: the reservations of the groups' manager.
            metric: returns a metric of Reserver.
        """
        now, stands = time.time(), {str(each.ref): each for each in found if not each.owner}
        known = [group for group in groups if str(group.ref) in stands]
        due = [group for group in known if group.is_due(now)]
        lines = [f"reservation of a group leaked: {g.ref}" for g in known if g not in due]
        for group in due:
            # A slot that comes back is claimed by the pods that are there.
            comes_back = group.is_reusable or group.is_refilled
            claims = set() if comes_back else group.claimants.keys()
            if forgotten := claims - stands[str(group.ref)].claimants:
                lines.append(f"claims of {group.ref} forgotten: {', '.join(sorted(forgotten))}")
        phases = Counter(map(_phase, due))
        for phase in _PHASES:
            counted = round(metric(f'reserver_reservations{{phase="{phase}"}}'))
            if counted != phases[phase]:
                lines.append(f"reserver has {counted} {phase}, the stores say {phases[phase]}")
        lines += [line for group in due for line in _waiting(group, book)]
        return cls(phases["Active"], tuple(lines))


def _phase(group: Group) -> str:
    if group.is_claimed:
        return "Claimed"
    is_short = bool(group.left.get("")) and not (group.is_refilled and any(group.nodes.values()))
    return "Pending" if is_short else "Active"


def _waiting(group: Group, book: Book) -> Iterator[str]:
    """Yield the pending pods of a group that a free slot with room could take."""
    asked = group.cpu if group.is_whole else 0
    places = (node for node, slots in group.left.items() if slots and node)
    free = [node for node in places if book.has_room(node, asked)]
    for pod in book.pods_of(group) if free else ():
        if not pod.node:
            yield f"{pod.name} waits, and {group.ref} has a slot for it on {free[0]}"
