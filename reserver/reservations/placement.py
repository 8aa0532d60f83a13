"""The allowed and the chosen places of a reservation, and its unclaimed slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reserver.cluster.constraints import UNCONSTRAINED, Constraints
from reserver.reservations.enums import Strategy

_MOST_NAMED = 5


class Part(NamedTuple):
    """A number of slots on a node, including claimed ones."""

    node: str
    slots: int


Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The constraints on the nodes that Reserver may choose for a reservation.

    Attributes:
        constraints: the constraints of a slot's pod on its node and its neighbours.
        strategy: the choice among several nodes.
        text: the written placement in one normal form, to compare placements.
    """

    constraints: Constraints = UNCONSTRAINED
    strategy: Strategy = Strategy.PACK
    text: str = ""


ANYWHERE = Placement()


def clipped(parts: Iterable[Part], slots: int) -> Parts:
    """Return the first parts with at most `slots` slots in total."""
    kept = []
    for part in parts:
        taken = min(part.slots, slots)
        if taken > 0:
            kept.append(Part(part.node, taken))
            slots -= taken
    return tuple(kept)


def joined(parts: Iterable[Part], more: Iterable[Part]) -> Parts:
    """Return the sum of two lists of parts, each node once."""
    slots: dict[str, int] = {}
    for part in (*parts, *more):
        slots[part.node] = slots.get(part.node, 0) + part.slots
    return tuple(Part(node, number) for node, number in slots.items())


def nodes_of(parts: Iterable[Part]) -> str:
    """Return the nodes of parts for a message."""
    names = [part.node for part in parts]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


FreeSlots = tuple[dict[str, int], int]
"""The unclaimed slots by node, and the number of unclaimed slots without a place."""


def slots_in_all(slots: int, refill_up_to: int, claims: int) -> int:
    """Return the number of slots with a number of claims: claimed and free slots together.

    Args:
        slots: the slots of the reservation; with refill, the slots that it keeps free.
        refill_up_to: the limit of refilling; 0: no refill.
        claims: the number of claimed slots.
    """
    return max(claims, min(slots + claims, refill_up_to)) if refill_up_to else slots


def claimed_slots(claimed_on: Sequence[str], *, is_whole: bool) -> int:
    """Return the number of claimed slots, given each claim's node; a whole node is one slot."""
    return len(set(claimed_on)) if is_whole else len(claimed_on)


def unclaimed(placed: Parts, slots: int, claimed_on: Sequence[str]) -> FreeSlots:
    """Return the unclaimed slots of `slots` slots.

    A claim on a node without a slot takes a slot without a place, or else one of the last node.
    """
    left = {part.node: part.slots for part in placed}
    placeless = slots - sum(left.values())
    if not claimed_on:
        return left, placeless
    elsewhere = 0
    for node, claims in Counter(claimed_on).items():
        there = min(left.get(node, 0), claims)
        if there:
            left[node] -= there
        elsewhere += claims - there
    without = min(placeless, elsewhere)
    elsewhere -= without
    for node in reversed(left):
        given = min(left[node], elsewhere)
        left[node] -= given
        elsewhere -= given
    return left, placeless - without


def refilled(placed: Parts, wanted: int, claimed_on: Sequence[str]) -> FreeSlots:
    """Return the unclaimed slots of a reservation with refill: `wanted` slots.

    Once a claim ends, there is a slot too many: the one that was placed last is left out.
    """
    claims, wanted = Counter(claimed_on), max(0, wanted)
    left: dict[str, int] = {}
    for part in placed:
        left[part.node] = min(wanted, max(0, part.slots - claims[part.node]))
        wanted -= left[part.node]
    return left, wanted


def compacted(placed: Parts, left: Mapping[str, int], claimed_on: Sequence[str]) -> Parts:
    """Return placed parts without the slots of ended claims."""
    claims = Counter(claimed_on)
    parts = (
        part._replace(slots=min(part.slots, claims[part.node] + left[part.node])) for part in placed
    )
    return tuple(part for part in parts if part.slots)
