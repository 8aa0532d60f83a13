"""Amounts of resources; equal amounts share one value in memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

_REMEMBERED = 1024
"""How many are found again: megabytes at most, as a reservation names few resources."""


def shared(amounts: Mapping[str, int]) -> Mapping[str, int]:
    """Return equal amounts, which many have: nobody may change them."""
    return _shared(tuple(amounts.items()))


def times(amounts: Mapping[str, int], slots: int) -> Mapping[str, int]:
    """Return the amounts of so many slots, which many have: nobody may change them."""
    return amounts if slots == 1 else shared({name: n * slots for name, n in amounts.items()})


@lru_cache(_REMEMBERED)
def _shared(amounts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return dict(amounts)
