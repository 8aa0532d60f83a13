"""Listeners that tests look at."""

from __future__ import annotations

from collections.abc import Callable

from reserver.cluster.pod import Pod
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref


class Recorded(Listener):
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.reservations: list[Ref] = []
        self.freed: list[str] = []
        self.nodes: list[str] = []
        self.refused: list[str] = []
        self.assumed: list[tuple[str, str]] = []

    def on_reservation_changed(self, ref: Ref) -> None:
        self.reservations.append(ref)

    def on_capacity_freed(self, node: str) -> None:
        self.freed.append(node)

    def on_node_changed(self, node: str) -> None:
        self.nodes.append(node)

    def on_pod_refused(self, pod_uid: str) -> None:
        self.refused.append(pod_uid)

    def on_pod_assumed(self, pod: Pod, node: str) -> None:
        self.assumed.append((pod.uid, node))


class Calling(Listener):
    """Calls a function with each reservation that changes."""

    def __init__(self, changed: Callable[[Ref], None]) -> None:
        self._changed = changed

    def on_reservation_changed(self, ref: Ref) -> None:
        self._changed(ref)
