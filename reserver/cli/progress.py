"""Progress messages for calls that take longer than a second."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from reserver.cli import failure

if TYPE_CHECKING:
    from reserver.client import CallFailed

_AFTER_S = 1.0


@asynccontextmanager
async def progress(words: str) -> AsyncIterator[None]:
    """Show a message on a terminal while a block takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    task = asyncio.create_task(_show(words))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@dataclass(slots=True)
class Retries:
    """Reports a repeated call on standard error, once, after a second.

    Attributes:
        address: where reserver is; empty for in the cluster of the kubeconfig.
        is_reported: whether it has.
    """

    address: str
    is_reported: bool = False

    def __call__(self, error: CallFailed, waited_s: float, left_s: float) -> None:
        """Report it, once."""
        if self.is_reported or waited_s < _AFTER_S:
            return
        self.is_reported = True
        where = f" at {self.address}" if self.address else ""
        until = f" for {left_s:.0f} more seconds" if isfinite(left_s) else ""
        failure.report(f"no answer from reserver{where} ({failure.cause(error)}); trying on{until}")


async def _show(words: str) -> None:
    await asyncio.sleep(_AFTER_S)
    from rich.console import Console

    with Console(stderr=True).status(words):
        await asyncio.Event().wait()
