"""What a terminal shows while something takes longer than a second."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_AFTER_S = 1.0


@asynccontextmanager
async def patience(words: str) -> AsyncIterator[None]:
    """After one second, say on a terminal what is waited for."""
    if not sys.stderr.isatty():
        yield
        return
    task = asyncio.create_task(_show(words))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _show(words: str) -> None:
    await asyncio.sleep(_AFTER_S)
    from rich.console import Console

    with Console(stderr=True).status(words):
        await asyncio.Event().wait()
