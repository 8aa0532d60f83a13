"""Load-driven strategies: what they look at, and what they remember between rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reserver.rebalance.inventory import Inventory
from reserver.rebalance.load import Load
from reserver.rebalance.policy import Policy
from reserver.rebalance.readings import Average
from reserver.rebalance.sources import Source, sources
from reserver.rebalance.spells import NO_ROUNDS, Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class RealLoad:
    """The measured load that a round knows.

    Attributes:
        loads: what is used, by source.
        before: what LowNodeLoad remembers, by profile.
        now: unix seconds.
        after: what it is to remember; filled as its profiles run.
    """

    loads: Mapping[Source, Load] = field(default_factory=dict)
    before: Mapping[str, Rounds] = field(default_factory=dict)
    now: float = 0.0
    after: dict[str, Rounds] = field(default_factory=dict)

    def rounds(self, profile: str) -> Rounds:
        """Return what a profile's LowNodeLoad remembers."""
        return self.before.get(profile, NO_ROUNDS)


def real_of(inventory: Inventory, policy: Policy, now: float) -> RealLoad:
    """Return the load that a dump has, for whatever source its policy asks."""
    pods = {}
    for name, containers in inventory.pod_usage.items():
        total: dict[str, float] = {}
        for usage in containers:
            for resource, amount in usage.items():
                total[resource] = total.get(resource, 0.0) + amount
        pods[name] = total
    nodes = {
        name: Average(dict(usage), now, now, 0.0) for name, usage in inventory.node_usage.items()
    }
    load = Load(nodes=nodes, pods=pods)
    return RealLoad(loads=dict.fromkeys(sources(policy), load), now=now)
