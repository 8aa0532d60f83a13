"""The writes of reservations under way, which go on if nobody waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

log = structlog.get_logger(__name__)

_WRITES_S = 5.0
"""How long writes under way may take once the watches have ended, in seconds. What waits for one
of these would wait for ever; the next Reserver finishes a set, or takes it back."""


class WriteTasks(asyncio.TaskGroup):
    """Writes under way, which go on if nobody waits for them; at the end of the block a while."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: set[asyncio.Task[Any]] = set()

    def create_task(self, *args: Any, **options: Any) -> asyncio.Task[Any]:  # noqa: ANN401
        """Begin a write."""
        task = super().create_task(*args, **options)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def __aexit__(self, *raised: Any) -> None:  # noqa: ANN401, PYI036 - as the base has it
        """Wait for them a while."""
        timer = asyncio.get_running_loop().call_later(_WRITES_S, self._give_up)
        try:
            await super().__aexit__(*raised)
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        log.warning("writes are left to the next start", number=len(self._under_way))
        for task in self._under_way:
            task.cancel()
