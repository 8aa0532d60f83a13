"""The one protocol of changes: what other parts of the process learn from the state and the stores.

A listener only notes what it has to look at, as a rule in a queue; its own loop does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod
from typing import Any

from reserver.cluster.pod import Pod
from reserver.errors import LeadershipLost
from reserver.reservations.reservation import Ref


class Listener:
    """Reacts to changes. Each method returns at once; what it does not override, it ignores."""

    __slots__ = ()

    def on_reservation_changed(self, ref: Ref) -> None:
        """Note that a reservation was written or removed, or that its phase may have changed."""

    def on_backing_changed(self, ref: Ref) -> None:
        """Note that its node may have become short for a reservation, or no longer is."""
        self.on_reservation_changed(ref)

    def on_occurrence_over(self, ref: Ref) -> None:
        """Note that an occurrence is over; the ledger still has it, and not the next."""

    def on_capacity_freed(self, node: str) -> None:
        """Note that less is held on a node than before, or that a slot has come back there."""
        self.on_node_changed(node)

    def on_node_changed(self, node: str) -> None:
        """Note that there may be room on a node where there was none."""

    def on_pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        """Note that a watch shows a pod as it was not before; None where it was or is not."""

    def on_pod_patched(self, namespace: str, marks: str) -> None:
        """Note that a pod exists whose annotation names the SchedPatches that it has."""

    def on_pod_refused(self, pod_uid: str) -> None:
        """Note that a pod begins to wait because of holds."""

    def on_pod_assumed(self, pod: Pod, node: str) -> None:
        """Note that the binding of a pod is decided."""


NOBODY = Listener()
"""Ignores all changes."""

_OTHERWISE = {
    "on_backing_changed": "on_reservation_changed",
    "on_capacity_freed": "on_node_changed",
}
"""What a change is to a listener that does not override its method."""

_EVENTS = tuple(name for name in vars(Listener) if name.startswith("on_"))


class Listeners(Listener):
    """Many listeners as one, in the order in which they were added.

    An exception of one costs no other, nor the decision or the watch that reports the change.
    """

    def __init__(self, failed: Callable[[object, Exception], object]) -> None:
        """Begin with none; `failed` is called with the change and the exception."""
        self._failed = failed
        self._handlers: dict[str, list[Callable[..., None]]] = {event: [] for event in _EVENTS}

    def add(self, listener: Listener) -> None:
        """Report changes to a listener from now on, after all others."""
        for event, handlers in self._handlers.items():
            handler = _handler(listener, event)
            if handler is not None:
                handlers.append(handler)

    def notify(self, event: str, *change: Any) -> None:  # noqa: ANN401 - of any event
        """Notify of a change, by the name of the method for it."""
        for handler in self._handlers[event]:
            try:
                handler(*change)
            except (MemoryError, LeadershipLost):
                raise
            except Exception as exc:  # noqa: BLE001 - the others are notified all the same
                self._failed(change[0], exc)


for _event in _EVENTS:
    setattr(Listeners, _event, partialmethod(Listeners.notify, _event))


def _handler(listener: Listener, event: str) -> Callable[..., None] | None:
    """Return the method that reacts to a change; None if the listener ignores it."""
    if getattr(type(listener), event) is not getattr(Listener, event):
        handler: Callable[..., None] = getattr(listener, event)
        return handler
    otherwise = _OTHERWISE.get(event)
    return _handler(listener, otherwise) if otherwise else None
