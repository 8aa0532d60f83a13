"""How fast this machine is now, so that a bound in seconds means the same on any."""

from __future__ import annotations

from time import thread_time

import msgspec

_OBJECTS = b"[" + b",".join([b"{}"] * 350_000) + b"]"
"""1 MiB of JSON, which becomes as many small objects as fit: decoding asks for much memory."""

IDLE_S = 0.018
"""How long an idle core decodes them, in seconds: that of the machine on which bounds were set."""

_TRIED = 9


def decoding_s() -> float:
    """Return how much CPU it takes to decode many small objects, in seconds."""
    began = thread_time()
    msgspec.json.decode(_OBJECTS)
    return thread_time() - began


def slowness() -> float:
    """Return how many times as long as on an idle core a computation takes here; 1 at least.

    It is the best of some tries, so that what a moment costs does not loosen a bound.
    """
    return max(1.0, min(decoding_s() for _ in range(_TRIED)) / IDLE_S)
