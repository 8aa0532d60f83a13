"""Nodes in doubt: an object on them cannot be read, so their free room is unknown.

kube-scheduler counts such a pod, and reserver does not. So where something is held on the node only
owners may have it, until the object is read or gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.listener import Listener

Key = tuple[str, str]
"""Namespace (empty for a node) and name."""


class UnreadableObjects:
    """The objects that cannot be read, and the nodes that they are about."""

    def __init__(self, snapshot: Snapshot, listener: Listener) -> None:
        """Begin without doubts; `listener` is notified of each node that is no longer in doubt."""
        self._snapshot = snapshot
        self._listener = listener
        self._nodes: dict[Key, str] = {}

    def __iter__(self) -> Iterator[Key]:
        """Yield the objects that cannot be read."""
        return iter(self._nodes)

    def note(self, key: Key, node: str) -> None:
        """Note that an object on a node cannot be read."""
        if self._nodes.get(key) == node:
            return
        self.trust(key)
        if node:
            self._nodes[key] = node
            self._snapshot.mark_unreadable(node, is_unreadable=True)

    def trust(self, key: Key) -> None:
        """Note that an object is read, or gone."""
        node = self._nodes.pop(key, None)
        if node is not None and node not in self._nodes.values():
            self._snapshot.mark_unreadable(node, is_unreadable=False)
            self._listener.on_capacity_freed(node)
