"""Counts the iterations of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def turns() -> AsyncIterator[Callable[[], int]]:
    """Yield a function that returns the number of iterations since the block began."""
    count = 0

    async def follow() -> None:
        nonlocal count
        while True:
            count += 1
            await asyncio.sleep(0)

    following = asyncio.create_task(follow())
    try:
        yield lambda: count
    finally:
        following.cancel()
