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

_COUNTED = 200_000
_COUNTED_S = 0.0055
"""How long a core that has nothing else to do counts so far, in seconds.

A step is compared with it: where the machine is slow, or busy, both take longer."""

T = TypeVar("T")


def _counting_s() -> float:
    began, total = thread_time(), 0
    for number in range(_COUNTED):
        total += number & 7
    return thread_time() - began


def least_cpu_s(make: Callable[[int], T], step: Callable[[T], object]) -> float:
    """Return how much CPU a step takes, in seconds of an idle core; what it refuses included.

    Args:
        make: makes what the step is given, another one for each number: it may be remembered.
        step: is measured.
    """
    best = float("inf")
    for number in range(5):
        given = make(number)
        gc.disable()  # Reserver collects when it has nothing else to do.
        before, began = _counting_s(), thread_time()
        with suppress(InvalidInput):
            step(given)
        taken_s = thread_time() - began
        best = min(best, taken_s * 2 * _COUNTED_S / (before + _counting_s()))
        gc.enable()
        if best < MOST_S:
            break
    return best
