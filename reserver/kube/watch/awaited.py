"""Waiting until a condition is true of what a watch shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Awaited:
    """Conditions that somebody waits for."""

    def __init__(self) -> None:
        """Begin with none."""
        self._conditions: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once a condition is true; call `check` when it may have become true."""
        if not condition():
            true = asyncio.get_running_loop().create_future()
            self._conditions.append((condition, true))
            await true

    def check(self) -> None:
        """Wake those whose condition is true."""
        conditions, self._conditions = self._conditions, []
        for condition, true in conditions:
            if true.done():
                continue  # Nobody waits any more.
            if condition():
                true.set_result(None)
            else:
                self._conditions.append((condition, true))
