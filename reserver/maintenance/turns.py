"""Turns: the nodes that a window takes in hand, within its `maxUnavailable`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.maintenance.model import ObservedNode, Window, WindowUse, holder_of


class Turn(NamedTuple):
    """An unfinished window with its current nodes."""

    window: Window
    members: frozenset[str]

    @property
    def most(self) -> int:
        """The most nodes that may be unavailable at a time."""
        return self.window.most_unavailable.of(len(self.members))

    @property
    def is_rolling(self) -> bool:
        """Whether some nodes always stay available, so that holds may stay on them."""
        return self.most < len(self.members)


@dataclass(slots=True)
class NodeTurn:
    """A node during a decision.

    Attributes:
        seen: the observed node.
        uses: the windows' records on the node, by key.
        holder: the key of the window that has the node in hand; empty without one.
        released: the last dropped record; None without one, or if DONE.
        taken: a window takes the node in hand in this pass.
        planned: unfinished windows that select the node.
    """

    seen: ObservedNode
    uses: dict[str, WindowUse]
    holder: str = ""
    released: WindowUse | None = None
    taken: bool = False
    planned: list[Window] = field(default_factory=list)

    @property
    def is_unavailable(self) -> bool:
        """Whether the node is in hand, cordoned or not ready."""
        return bool(self.holder) or self.seen.is_cordoned or not self.seen.is_ready


def settled(node: ObservedNode, active: Mapping[str, Turn], unread: frozenset[str]) -> NodeTurn:
    """Return a node without the records of windows that are over, or no longer select the node.

    The records of an uncordoned node become DONE.
    """
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
    return NodeTurn(node, uses, holder_of(uses), released)


def take(turn: Turn, nodes: Mapping[str, NodeTurn]) -> None:
    """Take nodes in hand up to the window's limit; unavailable nodes first, which cost nothing."""
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
        node.holder, node.released, node.taken = window.key, None, True
