"""Where Reserver may place a reservation, where it has placed it, and which slots are unclaimed."""

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
    """Where Reserver may place a reservation that names no node.

    Attributes:
        constraints: what the pod of a slot demands of its node and its neighbours.
        strategy: which of several nodes to take.
        text: what is written, in one form, to tell placements apart.
    """

    constraints: Constraints = UNCONSTRAINED
    strategy: Strategy = Strategy.PACK
    text: str = ""


ANYWHERE = Placement()


def clipped(parts: Iterable[Part], slots: int) -> Parts:
    """Return the first of these parts, with at most so many slots together."""
    kept = []
    for part in parts:
        taken = min(part.slots, slots)
        if taken > 0:
            kept.append(Part(part.node, taken))
            slots -= taken
    return tuple(kept)


def joined(parts: Iterable[Part], more: Iterable[Part]) -> Parts:
    """Return all slots of both, each node once."""
    slots: dict[str, int] = {}
    for part in (*parts, *more):
        slots[part.node] = slots.get(part.node, 0) + part.slots
    return tuple(Part(node, number) for node, number in slots.items())


def nodes_of(parts: Iterable[Part]) -> str:
    """Return the nodes of parts as a message names them."""
    names = [part.node for part in parts]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


FreeSlots = tuple[dict[str, int], int]
"""How many slots are not claimed, by node, and how many of these have no place."""


def slots_in_all(slots: int, refill_up_to: int, claims: int) -> int:
    """Return how many slots there are beside so many claims, claimed and wanted ones together.

    Args:
        slots: that a reservation has, or keeps free where it replaces claimed ones.
        refill_up_to: the limit of replacing; 0: none is replaced.
        claims: how many slots are claimed.
    """
    return max(claims, min(slots + claims, refill_up_to)) if refill_up_to else slots


def claimed_slots(claimed_on: Sequence[str], *, is_whole: bool) -> int:
    """Return how many slots are claimed, by the nodes of all claims; a whole node is one slot."""
    return len(set(claimed_on)) if is_whole else len(claimed_on)


def unclaimed(placed: Parts, slots: int, claimed_on: Sequence[str]) -> FreeSlots:
    """Return what is left of so many slots.

    A claim where there is no slot is of one without a place, or else of the last node.
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
    """Return what is left where claimed slots are replaced: so many as are wanted.

    Once a claim ends, there is a slot too many: that which was placed last.
    """
    claims, wanted = Counter(claimed_on), max(0, wanted)
    left: dict[str, int] = {}
    for part in placed:
        left[part.node] = min(wanted, max(0, part.slots - claims[part.node]))
        wanted -= left[part.node]
    return left, wanted


def compacted(placed: Parts, left: Mapping[str, int], claimed_on: Sequence[str]) -> Parts:
    """Return where slots are placed, without those of claims that have ended."""
    claims = Counter(claimed_on)
    parts = (
        part._replace(slots=min(part.slots, claims[part.node] + left[part.node])) for part in placed
    )
    return tuple(part for part in parts if part.slots)
