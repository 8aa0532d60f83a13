"""Measures the CPU time of one step."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import thread_time
from typing import TypeVar

from hack.bed.pace import IDLE_S, decoding_s, slowness
from reserver.errors import InvalidInput

MOST_S = 0.05
"""Most CPU time of a step, in seconds: the event loop may be held for a tenth of a second.

A step that seems slow is compared with a decoder, which asks for as much new memory: where the
machine is slow, or its memory is busy with other processes, both take longer."""

T = TypeVar("T")


def least_cpu_s(make: Callable[[int], T], step: Callable[[T], object]) -> float:
    """Return the CPU time of a step, refusals included, in seconds of an idle core.

    Args:
        make: returns an input by number; each differs, since the step may cache them.
        step: is measured.
    """
    best = float("inf")
    for number in range(9):
        given = make(number)
        gc.disable()  # Reserver collects when it has nothing else to do.
        began = thread_time()
        with suppress(InvalidInput):
            step(given)
        taken_s = thread_time() - began
        best = min(best, taken_s)
        if best >= MOST_S:
            best = min(best, taken_s * IDLE_S / decoding_s())
        gc.enable()
        if best < MOST_S:
            break
    return best


def longest_step_s(begin: Callable[[], Iterator[object]]) -> float:
    """Return how much CPU the longest step of a decision takes, in seconds of an idle core.

    Args:
        begin: begins the decision, the same each time.
    """
    best: list[float] = []
    for _ in range(5):
        taken = list(_steps_s(begin()))
        # What the machine does beside prolongs another step each time.
        best = [min(each) for each in zip(best, taken, strict=True)] if best else taken
        if max(best) < MOST_S:
            return max(best)
    return max(best) / slowness()


def _steps_s(steps: Iterator[object]) -> Iterator[float]:
    is_over = False
    while not is_over:
        gc.disable()
        began = thread_time()
        is_over = next(steps, steps) is steps
        taken_s = thread_time() - began
        gc.enable()
        yield taken_s
