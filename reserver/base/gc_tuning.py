"""Garbage collection in steps too short to block the event loop (docs/adr/0017).

A full collection scans every live container: with 20,000 pods that takes a tenth of a second and
frees nothing, because the caches of the cluster have no cycles. So one full collection scans each
container once, a few thousand at a time, and the container is then frozen.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

FEW = 4_000
"""Containers that a full collection scans in about two milliseconds."""

_EVERY_S = 0.05
_NEVER = 2**31 - 1
_OLDEST = 2


@contextmanager
def brief_collections() -> Iterator[None]:
    """Replace automatic full collections by `settle`, which a timer of the event loop calls."""
    loop = asyncio.get_running_loop()
    young, middle, old = gc.get_threshold()
    timer: asyncio.TimerHandle
    seen = -1

    def tick() -> None:
        nonlocal timer, seen
        # Only a collection of the middle generation fills the oldest, and counting takes long.
        if (collections := gc.get_stats()[_OLDEST - 1]["collections"]) != seen:
            settle()
            seen = collections
        timer = loop.call_later(_EVERY_S, tick)

    gc.freeze()  # Objects of the imports live as long as the process, and counting them takes long.
    gc.set_threshold(young, middle // 2, _NEVER)
    timer = loop.call_later(_EVERY_S, tick)
    try:
        yield
    finally:
        timer.cancel()
        gc.set_threshold(young, middle, old)
        gc.unfreeze()


def settle() -> None:
    """Freeze the oldest generation once it has `FEW` containers, after a full collection.

    Twice as many or more came at once, with one large object: they are frozen without a collection,
    which would block the event loop.
    """
    # No bytecode may run while the list lives: the list refers to tuples that other threads are
    # still building, and those threads then fail (SystemError: bad argument to internal function).
    (old,) = map(len, map(gc.get_objects, (_OLDEST,)))
    if old < FEW:
        return
    if old < 2 * FEW:
        gc.collect()
    gc.freeze()
