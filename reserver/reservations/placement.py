"""Where Reserver may place a reservation that names no node, and where it has placed it."""

from __future__ import annotations

from collections.abc import Iterable
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
