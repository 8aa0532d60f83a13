"""Ends long calls when their caller's right ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def while_lasting(
    right: Coroutine[Any, Any, None], responses: AsyncGenerator[T]
) -> AsyncIterator[T]:
    """Yield responses until there are no more, or the right to them ends.

    Args:
        right: raises when it ends, and does not return before.
        responses: what to yield; closed at the end.

    Raises:
        Exception: what `right` or `responses` raised.
    """
    lasting = asyncio.ensure_future(right)
    turn: asyncio.Future[T] | None = None
    try:
        while True:
            turn = asyncio.ensure_future(anext(responses))
            await asyncio.wait({turn, lasting}, return_when=asyncio.FIRST_COMPLETED)
            if lasting.done():
                lasting.result()
            try:
                response = turn.result()
            except StopAsyncIteration:
                return
            yield response
    finally:
        pending = [future for future in (lasting, turn) if future is not None]
        for future in pending:
            future.cancel()
        await asyncio.wait(pending)
        for future in pending:
            if not future.cancelled():
                future.exception()  # Raised already, or no longer of interest.
        await responses.aclose()
