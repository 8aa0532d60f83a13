"""The ways of judging a policy, as people name them."""

from __future__ import annotations

from enum import StrEnum


class Compat(StrEnum):
    """How a policy is judged."""

    SOUND = "sound"
    """As one plan."""

    UPSTREAM = "upstream"
    """As upstream's code judges it, quirks included."""
