"""The observed MaintenanceWindows and nodes, as values for decisions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from reserver.cluster.node import READY, Node
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import ResourceMetadata
from reserver.k8s.objects.times import parse_moment
from reserver.k8s.watch.object_view import Key, ObjectView
from reserver.maintenance.codec import (
    MOST_WINDOWS,
    WindowObject,
    WindowStatusObject,
    read_object,
)
from reserver.maintenance.model import ObservedNode, Window, read_uses
from reserver.maintenance.turns import Turn
from reserver.moves.drain import Drain


@dataclass(slots=True, eq=False)
class KnownWindow:
    """A MaintenanceWindow as it was last read.

    Attributes:
        metadata: the object's metadata; its resourceVersion is the precondition of a write.
        window: the spec; None if invalid.
        problem: the error of an invalid spec; None if valid.
        said: the status; None if empty, or if Reserver did not write it.
        waiting: the object, if unread because there are `MOST_WINDOWS` others; else None.
    """

    metadata: ResourceMetadata
    window: Window | None
    problem: InvalidInput | None
    said: WindowStatusObject | None
    waiting: WindowObject | None = None


class KnownWindows:
    """All MaintenanceWindows by name."""

    def __init__(self, on_changed: Callable[[], None]) -> None:
        """Begin without windows; `on_changed` is called after each change."""
        self._on_changed = on_changed
        self._known: dict[str, KnownWindow] = {}

    def __iter__(self) -> Iterator[KnownWindow]:
        """Yield each window."""
        yield from self._known.values()

    def view(self) -> ObjectView[WindowObject]:
        """Return the view that updates the windows from the watch."""
        return ObjectView(
            WindowObject,
            seen=lambda item, _: self.put(item),
            gone=self._drop,
            known=lambda: [("", name) for name in self._known],
        )

    def put(self, item: WindowObject) -> None:
        """Store a new version of a MaintenanceWindow; an older version is ignored."""
        metadata = item.metadata
        before = self._known.get(metadata.name)
        is_same = before is not None and before.metadata.uid == metadata.uid
        if before is not None and is_same and metadata.revision < before.metadata.revision:
            return  # The response to Reserver's write came before this event.
        others = (name for name, known in self._known.items() if known.waiting is None)
        if sum(name != metadata.name for name in others) >= MOST_WINDOWS:
            problem = f"there are {MOST_WINDOWS} MaintenanceWindows already"
            error = InvalidInput("", problem, "delete those that are over")
            self._known[metadata.name] = KnownWindow(metadata, None, error, item.said(), item)
            self._on_changed()
            return
        try:
            known = KnownWindow(metadata, read_object(item), None, item.said())
        except InvalidInput as exc:
            known = KnownWindow(metadata, None, exc.detached(), item.said())
        self._known[metadata.name] = known
        self._on_changed()

    def answered(self, known: KnownWindow, item: WindowObject) -> None:
        """Store the response to a write, unless the watch has shown a later state, or the end."""
        if self._known.get(item.metadata.name) is known:
            self.put(item)

    def _drop(self, key: Key) -> None:
        self._known.pop(key[1], None)
        if waiting := next(filter(None, (known.waiting for known in self)), None):
            self.put(waiting)
        self._on_changed()


def turn_of(window: Window, nodes: list[Node]) -> Generator[None, None, Turn]:
    """Find the nodes of a window, in steps."""
    members = []
    for number, node in enumerate(nodes):
        if window.has(node.name, node.labels):
            members.append(node.name)
        if number % 1_000 == 0:
            yield
    return Turn(window, frozenset(members))


def observed(node: Node, drain: Drain | None) -> ObservedNode:
    """Return the fields of a node that maintenance decides on."""
    ready = node.conditions.get(READY)
    since = None
    if ready is not None and ready.status != "True":
        try:
            since = parse_moment(ready.since)
        except InvalidInput:  # No kubelet writes this: the duration is unknown.
            since = None
    return ObservedNode(
        name=node.name,
        is_cordoned=node.unschedulable,
        uses=read_uses(node),
        conditions=node.conditions,
        not_ready_since=since,
        drain=drain,
    )
