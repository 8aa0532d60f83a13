"""Progress messages for calls that take longer than a second."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from math import isfinite
from types import FrameType
from typing import TYPE_CHECKING

from reserver.cli import failure

if TYPE_CHECKING:
    from reserver.client import CallFailed

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


@contextmanager
def ctrl_c(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Have Ctrl-C call this in a block in which the event loop, which takes it else, is held."""
    if threading.current_thread() is not threading.main_thread():  # It gets no signals.
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(slots=True)
class Retries:
    """Says on standard error, once, that a call is being repeated, if for longer than a second.

    Attributes:
        address: where reserver is; empty for in the cluster of the kubeconfig.
        is_said: whether it was said.
    """

    address: str
    is_said: bool = False

    def __call__(self, error: CallFailed, waited_s: float, left_s: float) -> None:
        """Say it, if it is time to."""
        if self.is_said or waited_s < _AFTER_S:
            return
        self.is_said = True
        where = f" at {self.address}" if self.address else ""
        until = f" for {left_s:.0f} more seconds" if isfinite(left_s) else ""
        failure.tell(f"no answer from reserver{where} ({failure.cause(error)}); trying on{until}")


async def _show(words: str) -> None:
    await asyncio.sleep(_AFTER_S)
    from rich.console import Console

    with Console(stderr=True).status(words):
        await asyncio.Event().wait()
