"""Keeps autoscalers from removing nodes that hold reservations."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from reserver.errors import ApiError, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.nodes import keeping_changes
from reserver.k8s.objects.objects import Metadata, PartialObject, decode
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.listener import Listener
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State

log = structlog.get_logger(__name__)

AFTER_S = 0.5
"""Seconds from the begin or end of a hold to the write of its node: a hold that comes and goes
sooner causes no write."""

_AT_ONCE = 4
"""Most node writes in flight."""


class ScaleDownGuard(Listener):
    """Keeps autoscalers from removing nodes that hold reservations.

    Attributes:
        writes: nodes written so far.
    """

    def __init__(
        self,
        client: ApiClient,
        state: State,
        is_host: Callable[[str], bool] = lambda _: False,
        queue: WorkQueue[str] | None = None,
    ) -> None:
        """Begin with an empty queue.

        Args:
            is_host: returns whether a node stays for the pods there, even without a hold.
            queue: nodes that may have to be written.
        """
        self._client = client
        self._state = state
        self._is_host = is_host
        self._queue = queue or WorkQueue[str]("guard")
        self.writes = 0

    def on_reservation_changed(self, ref: Ref) -> None:
        """Queue the nodes of a changed reservation; returns at once."""
        reservation = self._state.ledger.get(ref)
        for part in reservation.parts if reservation else ():
            self._queue.add(part.node, AFTER_S)

    def on_node_changed(self, node: str) -> None:
        """Queue a changed node if its annotation differs from the need; returns at once."""
        if self._is_due(node):
            self._queue.add(node, AFTER_S)

    async def run(self) -> None:
        """Annotate nodes until cancelled."""
        await self._queue.run(self._write, _AT_ONCE)

    def _is_needed(self, node: str) -> bool:
        row = self._state.snapshot.row(node)
        is_held = row is not None and bool(self._state.snapshot.has_holds[row])
        return is_held or self._is_host(node)

    def _is_due(self, name: str) -> bool:
        node = self._state.node(name)
        return node is not None and node.is_kept != self._is_needed(name)

    async def _write(self, names: list[str]) -> None:
        (name,) = names
        if not self._is_due(name):
            self._queue.succeeded(name)
            return
        path = f"/api/v1/nodes/{name}"
        try:
            found = decode(PartialObject, await self._client.get(path)).metadata
            await self._annotate(path, found, name)
        except (ApiError, InvalidInput) as exc:
            error = exc if isinstance(exc, ApiError) else None
            if error is not None and error.is_absent:
                self._queue.succeeded(name)
            elif error is not None and error.is_conflict:  # Another client has written the node.
                self._queue.add(name, AFTER_S)
            elif self._queue.failed(name, error) == 1:
                log.warning("node cannot be annotated, retrying", node=name, why=str(exc))
        else:
            self._queue.succeeded(name)

    async def _annotate(self, path: str, found: Metadata, name: str) -> None:
        """Write the changed annotations, unless another client writes the node first."""
        wanted = keeping_changes(found.annotations or {}, is_needed=self._is_needed(name))
        if wanted:
            metadata = {"resourceVersion": found.resource_version, "annotations": wanted}
            await self._client.patch(path, {"metadata": metadata})
            self.writes += 1
