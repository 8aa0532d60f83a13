"""Counts for how many rounds in a row a node has been hot or calm.

The rules are those of koord-descheduler (pkg/descheduler/utils/anomaly). What was counted is a
value that one round hands to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from reserver.rebalance.arguments.load import AnomalyCondition


class AnomalyCount(NamedTuple):
    """For how long a node has been hot.

    Attributes:
        hot: rounds in a row in which it was.
        calm: rounds in a row in which it was not, since it counts as hot.
        until: unix seconds until which it counts as hot; None while it does not.
        seen_at: unix seconds of the latest of these rounds.
    """

    hot: int = 0
    calm: int = 0
    until: float | None = None
    seen_at: float = 0.0


class Rounds(NamedTuple):
    """The memory of one profile's LowNodeLoad over rounds.

    Attributes:
        anomalies: of nodes that were hot lately, by name.
        at: when the latest one was, in unix seconds.
        prod: of nodes whose prod pods alone used too much, by name.
    """

    anomalies: Mapping[str, AnomalyCount]
    at: float
    prod: Mapping[str, AnomalyCount] = MappingProxyType({})


NO_ROUNDS = Rounds({}, 0.0)


def counted(
    before: AnomalyCount, condition: AnomalyCondition, now: float, *, is_hot: bool
) -> AnomalyCount:
    """Return a node's count after one more round."""
    if before.until is not None and now > before.until:
        before = AnomalyCount()
    if before.until is None:
        if not is_hot:
            return AnomalyCount()
        hot = before.hot + 1
        is_long = hot > condition.consecutive_abnormalities
        return AnomalyCount(hot, 0, now + condition.timeout_s if is_long else None, now)
    calm = 0 if is_hot else before.calm + 1
    if calm > condition.consecutive_normalities:
        return AnomalyCount()
    return AnomalyCount(before.hot, calm, before.until, now)
