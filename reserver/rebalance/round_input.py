"""Decides a round: from the cluster and the policy to a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.measured_load import Rounds, Source
from reserver.rebalance.plan import Plan
from reserver.rebalance.policy import DeschedulerPolicy

Timed = Callable[[str, str], AbstractContextManager[None]]
"""Returns a context that measures the time of a strategy of a profile."""


def untimed(profile: str, strategy: str) -> AbstractContextManager[None]:  # noqa: ARG001 - a shape
    """Return a context that measures nothing."""
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundInput:
    """The inputs of a round's decision.

    Attributes:
        policy: the policy.
        loads: usage, by source.
        rounds: LowNodeLoad's state of the last round, by profile.
        now: unix seconds.
        timed: measures the time of each strategy.
        least_gain: the smallest gain of a move between two nodes, in percentage points; 0 for any.
    """

    policy: DeschedulerPolicy
    cluster: ClusterState
    loads: Mapping[Source, SmoothedLoad]
    rounds: Mapping[str, Rounds]
    now: float
    timed: Timed = untimed
    least_gain: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision of a round.

    Attributes:
        plan: what moves.
        rounds: what LowNodeLoad is to remember, by profile.
    """

    plan: Plan
    rounds: Mapping[str, Rounds]
