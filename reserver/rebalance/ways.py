"""The modes of rebalancing: how a policy is judged, and how a plan is carried out."""

from __future__ import annotations

from enum import StrEnum

from reserver.errors import ConfigurationError


class Compat(StrEnum):
    """The way a policy is judged."""

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


def check_making_room(prefix: str, compat: Compat, mode: Mode) -> None:
    """Refuse the ways in which no round makes room for pending pods.

    Args:
        prefix: of the flags that are named, such as ``--``.
        compat: how a policy is judged.
        mode: what has to be there before a pod is evicted.

    Raises:
        ConfigurationError: no room is held, or upstream is to decide, which makes none.
    """
    if mode is not Mode.RESERVE_FIRST:
        problem = f"holds the room while others leave it; give {prefix}mode reserve-first"
        raise ConfigurationError(f"{prefix}make-room: {problem}")
    if compat is not Compat.SOUND:
        problem = f"is not the descheduler's; leave out {prefix}compat upstream"
        raise ConfigurationError(f"{prefix}make-room: {problem}")
