"""Waits for conditions that other tasks bring about without a notification."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_PATIENCE_S = 60
"""A wait that takes longer has failed, on the slowest machine, too."""


async def until(condition: Callable[[], T], pause_s: float = 0.001) -> T:
    """Return the value of a condition once it is true.

    Raises:
        TimeoutError: it has not come true in a minute.
    """

    async def ask() -> T:
        return condition()

    return await until_answered(ask, pause_s)


async def until_answered(ask: Callable[[], Awaitable[T]], pause_s: float = 0.01) -> T:
    """Return the answer to a question once it is true.

    Args:
        ask: the question.
        pause_s: seconds between two questions.

    Raises:
        TimeoutError: it has not come true in a minute.
    """
    async with asyncio.timeout(_PATIENCE_S):
        while not (answer := await ask()):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(pause_s)
    return answer
