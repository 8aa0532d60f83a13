"""The protocol of changes: notifications of the state and the stores to the rest of the process.

A listener only queues the changed object; its own loop does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reserver.cluster.pod import Pod
from reserver.errors import LeadershipLost
from reserver.reservations.reservation import Ref


class Listener:
    """Reacts to changes. Each method returns at once; by default it does nothing."""

    __slots__ = ()

    def on_reservation_changed(self, ref: Ref) -> None:
        """A reservation was written or removed, or its phase may have changed."""

    def on_backing_changed(self, ref: Ref) -> None:
        """A reservation's node may have become short of room, or no longer be short."""
        self.on_reservation_changed(ref)

    def on_occurrence_over(self, ref: Ref) -> None:
        """An occurrence has ended; the ledger still has this occurrence, not the next."""

    def on_capacity_freed(self, node: str) -> None:
        """Less is held on a node than before, or a slot has come back there."""
        self.on_node_changed(node)

    def on_node_changed(self, node: str) -> None:
        """A node has changed, and may have more room."""

    def on_pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        """A watch shows a changed pod; `before` is None if new, `after` is None if deleted."""

    def on_pod_patched(self, namespace: str, marks: str) -> None:
        """A pod exists with an annotation that names its SchedPatches."""

    def on_pod_refused(self, pod_uid: str) -> None:
        """A pod begins to wait because of holds."""

    def on_pod_assumed(self, pod: Pod, node: str) -> None:
        """The binding of a pod to a node is decided."""


NOBODY = Listener()
"""Ignores all changes."""

_FALLBACKS = {
    "on_backing_changed": "on_reservation_changed",
    "on_capacity_freed": "on_node_changed",
}
"""The event that a listener gets in place of one that it does not override."""

_EVENTS = tuple(name for name in vars(Listener) if name.startswith("on_"))


class Listeners(Listener):
    """Several listeners as one, in the order of their addition.

    An exception of one listener reaches neither the others nor the code that reports the change.
    """

    def __init__(self, failed: Callable[[object, Exception], object]) -> None:
        """Begin without listeners; `failed` is called with the changed object and the exception."""
        self._failed = failed
        self._handlers: dict[str, list[Callable[..., None]]] = {event: [] for event in _EVENTS}

    def add(self, listener: Listener) -> None:
        """Add a listener, after all others."""
        for event, handlers in self._handlers.items():
            handler = _handler(listener, event)
            if handler is not None:
                handlers.append(handler)


def _notifying(event: str) -> Callable[..., None]:
    """Return the method of `Listeners` for an event: it notifies each listener."""

    def notify(self: Listeners, *change: Any) -> None:  # noqa: ANN401 - of any event
        for handler in self._handlers[event]:
            try:
                handler(*change)
            except (MemoryError, LeadershipLost):
                raise
            except Exception as exc:  # noqa: BLE001 - the others are notified all the same
                self._failed(change[0], exc)

    return notify


for _event in _EVENTS:
    setattr(Listeners, _event, _notifying(_event))


def _handler(listener: Listener, event: str) -> Callable[..., None] | None:
    """Return the method of a listener for an event; None if the listener ignores the event."""
    if getattr(type(listener), event) is not getattr(Listener, event):
        handler: Callable[..., None] = getattr(listener, event)
        return handler
    fallback = _FALLBACKS.get(event)
    return _handler(listener, fallback) if fallback else None
