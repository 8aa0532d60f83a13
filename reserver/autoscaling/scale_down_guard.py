"""Keeps autoscalers from removing nodes as long as they hold reservations."""

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
"""How long a hold lasts, or is over, before its node is written, in seconds: what comes and goes
within that costs the API server nothing."""

_AT_ONCE = 4
"""How many nodes are written at once."""


class ScaleDownGuard(Listener):
    """Keeps autoscalers from removing nodes that hold reservations.

    Attributes:
        writes: how many nodes were written.
    """

    def __init__(
        self,
        client: ApiClient,
        state: State,
        is_host: Callable[[str], bool] = lambda _: False,
        queue: WorkQueue[str] | None = None,
    ) -> None:
        """Begin with nothing to do.

        Args:
            is_host: returns whether a node is kept for who is there, held or not.
            queue: of nodes that may have to be written.
        """
        self._client = client
        self._state = state
        self._is_host = is_host
        self._queue = queue or WorkQueue[str]("guard")
        self.writes = 0

    def on_reservation_changed(self, ref: Ref) -> None:
        """Note that a reservation may hold something else now; returns at once."""
        reservation = self._state.ledger.get(ref)
        for part in reservation.parts if reservation else ():
            self._queue.add(part.node, AFTER_S)

    def on_node_changed(self, node: str) -> None:
        """Note that a node has changed, or what is held there; returns at once."""
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
            elif error is not None and error.is_conflict:  # Somebody has written it meanwhile.
                self._queue.add(name, AFTER_S)
            elif self._queue.failed(name, error) == 1:
                log.warning("node cannot be annotated, retrying", node=name, why=str(exc))
        else:
            self._queue.succeeded(name)

    async def _annotate(self, path: str, found: Metadata, name: str) -> None:
        """Write what is to be changed, unless somebody writes the node meanwhile."""
        wanted = keeping_changes(found.annotations or {}, is_needed=self._is_needed(name))
        if wanted:
            metadata = {"resourceVersion": found.resource_version, "annotations": wanted}
            await self._client.patch(path, {"metadata": metadata})
            self.writes += 1
