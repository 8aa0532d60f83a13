"""The ways of judging a policy and of carrying a plan out, as people name them."""

from __future__ import annotations

from enum import StrEnum


class Compat(StrEnum):
    """How a policy is judged."""

    SOUND = "sound"
    """As one plan."""

    UPSTREAM = "upstream"
    """As upstream's code judges it, quirks included."""


class Mode(StrEnum):
    """What has to be there before a pod is evicted (as `migration.move.Mode`)."""

    EVICT_ONLY = "evict-only"
    """Nothing: a round evicts."""

    RESERVE_FIRST = "reserve-first"
    """A seat: a round writes PodMoves."""
