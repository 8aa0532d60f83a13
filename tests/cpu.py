"""How much CPU one step takes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from time import thread_time
from typing import TypeVar

from reserver.errors import InvalidInput

MOST_S = 0.05
"""How much CPU one step may take, in seconds: the loop may be held for a tenth of a second."""

T = TypeVar("T")


def least_cpu_s(make: Callable[[int], T], step: Callable[[T], object]) -> float:
    """Return how much CPU a step takes, in seconds; what it refuses included.

    On a busy machine one look may be slow; what is slow each time is.

    Args:
        make: makes what the step is given, another one for each number: it may be remembered.
        step: is measured.
    """
    best = float("inf")
    for number in range(5):
        given = make(number)
        gc.disable()  # Reserver collects when it has nothing else to do.
        began = thread_time()
        with suppress(InvalidInput):
            step(given)
        best = min(best, thread_time() - began)
        gc.enable()
        if best < MOST_S:
            break
    return best
