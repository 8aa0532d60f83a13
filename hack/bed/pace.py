"""Measures the speed of this machine, so that a bound in seconds means the same everywhere."""

from __future__ import annotations

from time import thread_time

import msgspec

_OBJECTS = b"[" + b",".join([b"{}"] * 350_000) + b"]"
"""1 MiB of JSON, which becomes as many small objects as fit: decoding asks for much memory."""

IDLE_S = 0.018
"""Seconds of the decoding on an idle core of the machine on which the bounds were set."""

_TRIED = 9


def decoding_s() -> float:
    """Return how much CPU it takes to decode many small objects, in seconds."""
    began = thread_time()
    msgspec.json.decode(_OBJECTS)
    return thread_time() - began


def slowness() -> float:
    """Return the time of a computation here as a multiple of an idle core's; at least 1.

    The best of some tries counts, so that a short disturbance does not loosen a bound.
    """
    return max(1.0, min(decoding_s() for _ in range(_TRIED)) / IDLE_S)
