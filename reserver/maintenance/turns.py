"""Turns: which nodes of a window are in hand, as many as may be unavailable at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.maintenance.model import ObservedNode, Window, WindowUse


class Turn(NamedTuple):
    """A window that is not over, and the nodes that it has now."""

    window: Window
    members: tuple[str, ...]

    @property
    def most(self) -> int:
        """How many of them may be unavailable at a time."""
        return self.window.most_unavailable.of(len(self.members))

    @property
    def is_rolling(self) -> bool:
        """Whether not all of them are unavailable at once, so that holds may stay among them."""
        return self.most < len(self.members)


@dataclass(slots=True)
class NodeTurn:
    """A node while it is decided on.

    Attributes:
        seen: the node as it was last observed.
        uses: what windows have done with it, by their keys.
        released: what a window that is over has left of it.
        taken: a window takes it in hand now.
        planned: the windows to come that have it.
    """

    seen: ObservedNode
    uses: dict[str, WindowUse]
    released: WindowUse | None = None
    taken: bool = False
    planned: list[Window] = field(default_factory=list)

    @property
    def holder(self) -> str:
        """The key of the window that has it in hand; empty without one."""
        return next((key for key, use in self.uses.items() if use is not WindowUse.DONE), "")

    @property
    def is_unavailable(self) -> bool:
        """Whether pods may not go there now."""
        return bool(self.holder) or self.seen.is_cordoned or not self.seen.is_ready


def settled(node: ObservedNode, active: Mapping[str, Turn], unread: frozenset[str]) -> NodeTurn:
    """Return a node without the windows that are over; one that was uncordoned is done."""
    uses = dict[str, WindowUse]()
    released = None
    for key, use in node.uses.items():
        turn = active.get(key)
        if key.partition(".")[0] in unread:
            uses[key] = use
        elif turn is None or node.name not in turn.members:
            released = released if use is WindowUse.DONE else use
        else:
            uses[key] = use if node.is_cordoned else WindowUse.DONE
    return NodeTurn(node, uses, released)


def take(turn: Turn, nodes: Mapping[str, NodeTurn]) -> None:
    """Take as many nodes in hand as may be unavailable; first those that are so already."""
    window, members = turn.window, [nodes[name] for name in turn.members]
    free = turn.most - sum(node.is_unavailable for node in members)
    waiting = (node for node in members if not node.holder and window.key not in node.uses)
    for node in sorted(waiting, key=lambda node: (not node.is_unavailable, node.seen.name)):
        if not node.is_unavailable:
            if free <= 0:
                return
            free -= 1
        found = WindowUse.FOUND_CORDONED if node.seen.is_cordoned else WindowUse.CORDONED
        node.uses[window.key] = node.released if node.released and node.seen.is_cordoned else found
        node.released, node.taken = None, True
