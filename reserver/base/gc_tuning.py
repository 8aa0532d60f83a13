"""Garbage collection in steps that do not hold the event loop (docs/adr/0017).

A full collection looks at every container that lives: with 20,000 pods it takes a tenth of a
second, and finds nothing, for what is known of the cluster has no cycles. So each container is
looked at by one full collection, a few at a time, and by no other.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

FEW = 4_000
"""So many containers a full collection looks at without delay: they take some two milliseconds."""

_EVERY_S = 0.05
_NEVER = 2**31 - 1
_OLDEST = 2


@contextmanager
def brief_collections() -> Iterator[None]:
    """Have full collections wait for `settle`, which the running event loop calls now and then."""
    loop = asyncio.get_running_loop()
    young, middle, old = gc.get_threshold()
    timer: asyncio.TimerHandle
    seen = -1

    def look() -> None:
        nonlocal timer, seen
        # Nothing grows old but by a collection of the generation before, and counting takes long.
        if (collections := gc.get_stats()[_OLDEST - 1]["collections"]) != seen:
            settle()
            seen = collections
        timer = loop.call_later(_EVERY_S, look)

    gc.freeze()  # What the imports have made stays, and takes long to count.
    gc.set_threshold(young, middle // 2, _NEVER)
    timer = loop.call_later(_EVERY_S, look)
    try:
        yield
    finally:
        timer.cancel()
        gc.set_threshold(young, middle, old)
        gc.unfreeze()


def settle() -> None:
    """Pass over what has grown old from now on, as soon as it is much.

    What one large object brought at once is passed over unseen: nobody waits for that.
    """
    # No bytecode may run while the list lives: it refers to tuples that other threads still build,
    # and these then fail (SystemError: bad argument to internal function).
    (old,) = map(len, map(gc.get_objects, (_OLDEST,)))
    if old < FEW:
        return
    if old < 2 * FEW:
        gc.collect()
    gc.freeze()
