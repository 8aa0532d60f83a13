"""The cleaner: tidies the store. Nothing is enforced by it: what is over holds nothing before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from reserver.errors import ApiError
from reserver.kube.apply import Apply
from reserver.kube.store import Store

log = structlog.get_logger(__name__)


class Cleaner:
    """Removes entries that have expired or were claimed, one key at a time.

    Attributes:
        edits: how many edits were made.
        lost: how many were not, because somebody else wrote the key in between.
        unknown_nodes: how many reservations name a node that does not exist.
    """

    def __init__(
        self,
        store: Store,
        apply: Apply,
        has_node: Callable[[str], bool],
        clock: Callable[[], float],
        interval_s: float,
    ) -> None:
        """Tidy a store every `interval_s` seconds; `clock` gives unix seconds."""
        self._store = store
        self._apply = apply
        self._has_node = has_node
        self._clock = clock
        self._interval_s = interval_s
        self.edits = 0
        self.lost = 0
        self.unknown_nodes = 0

    async def run(self) -> None:
        """Tidy until cancelled; a pass that fails is made again after the interval."""
        while True:
            await self.tidy()
            await asyncio.sleep(self._interval_s)

    async def tidy(self) -> None:
        """Make every edit that is due now, and report reservations on nodes that do not exist."""
        self.unknown_nodes = self._store.report_unknown_nodes(self._has_node)
        for edit in tuple(self._store.due_edits(self._clock())):
            try:
                done = await self._apply.edit(edit)
            except ApiError as exc:
                log.warning("store cannot be tidied, retrying", key=str(edit.ref), why=str(exc))
                return
            self.edits += done
            self.lost += not done
            log.info("store tidied", key=str(edit.ref), reason=edit.reason, done=done)
