"""Processes that compute, so that others wait for their turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hack.programs import started


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Have so many processes compute for as long as the block lasts."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(started(sys.executable, "-c", "while True: pass"))
        yield
