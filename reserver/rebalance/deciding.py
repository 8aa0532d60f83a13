"""A round's decision: what it looks at, which way of judging it takes, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reserver.rebalance.inventory import Inventory
from reserver.rebalance.load import Load
from reserver.rebalance.plan import Plan
from reserver.rebalance.policy import Policy
from reserver.rebalance.sources import Source
from reserver.rebalance.spells import Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a round decides on.

    Attributes:
        policy: what to do.
        inventory: the cluster.
        loads: what is used, by source.
        rounds: what LowNodeLoad remembers, by profile.
        now: unix seconds.
    """

    policy: Policy
    inventory: Inventory
    loads: Mapping[Source, Load]
    rounds: Mapping[str, Rounds]
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a round has decided.

    Attributes:
        plan: what moves.
        rounds: what LowNodeLoad is to remember, by profile.
    """

    plan: Plan
    rounds: Mapping[str, Rounds]
