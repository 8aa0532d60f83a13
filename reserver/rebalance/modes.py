"""The modes of rebalancing: how a policy is judged, and how a plan is carried out."""

from __future__ import annotations

import warnings
from enum import StrEnum

from reserver.errors import ConfigurationError


class Compat(StrEnum):
    """The way a policy is judged."""

    PLAN = "plan"
    """As one plan."""

    UPSTREAM = "upstream"
    """As upstream's code judges it, quirks included."""


COMPATS = "plan|upstream"
"""For help."""


def read_compat(flag: str, text: str) -> Compat:
    """Return the value of a flag; `sound`, the former name of `plan`, comes with a warning.

    Raises:
        ConfigurationError: there is no such way.
    """
    if text.lower() == "sound":
        warnings.warn(f"{flag} sound is now {flag} plan", FutureWarning, stacklevel=2)
        return Compat.PLAN
    try:
        return Compat(text.lower())
    except ValueError:
        raise ConfigurationError(f"{flag}: {text!r} is none of plan and upstream") from None


class Mode(StrEnum):
    """What has to be there before a pod is evicted (as `moves.phases.MoveMode`)."""

    EVICT_ONLY = "evict-only"
    """Nothing: a round evicts."""

    RESERVE_FIRST = "reserve-first"
    """A seat: a round writes PodMoves."""

    SURGE_FIRST = "surge-first"
    """A copy that is ready on the seat, of pods that can surge: a round writes PodMoves."""


def check_goal(flag: str, compat: Compat, mode: Mode) -> None:
    """Refuse the ways in which no round makes room or empties nodes.

    Args:
        flag: the goal that is named, such as ``--make-room``.
        compat: how a policy is judged.
        mode: what has to be there before a pod is evicted.

    Raises:
        ConfigurationError: no room is held, or upstream is to decide, which has no such goal.
    """
    if mode is Mode.EVICT_ONLY:
        problem = "holds room before pods leave; give --mode reserve-first or surge-first"
        raise ConfigurationError(f"{flag}: {problem}")
    if compat is not Compat.PLAN:
        problem = "is not the descheduler's; leave out --compat upstream"
        raise ConfigurationError(f"{flag}: {problem}")
