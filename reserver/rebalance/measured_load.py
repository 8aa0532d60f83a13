"""The measured load that strategies read: its sources, its values, and the rounds before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.rebalance.anomaly import NO_ROUNDS, Rounds
from reserver.rebalance.arguments.load import LowNodeLoad
from reserver.rebalance.arguments.utilization import LowNodeUtilization, UsageSource
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.node_load import thresholded
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.readings import Average


class Source(NamedTuple):
    """A metrics source that one or more strategies need.

    Attributes:
        kind: who is asked.
        resources: of which; empty where the source is not asked for each.
        queries: for their amounts, by resource; ours where a resource has none.
        share: a query for shares of 1, as LowNodeUtilization has it; empty for amounts.
    """

    kind: UsageSource
    resources: tuple[str, ...] = ()
    queries: tuple[tuple[str, str], ...] = ()
    share: str = ""


METRICS_API = Source(UsageSource.KUBERNETES)
NODE_METRICS = Source(UsageSource.NODE_METRIC)


def source_of(args: object) -> Source | None:
    """Return what a strategy wants to know; None if it goes by what pods request."""
    if isinstance(args, LowNodeUtilization) and args.usage is UsageSource.PROMETHEUS:
        return Source(args.usage, share=args.query)
    if isinstance(args, LowNodeLoad) and args.usage is UsageSource.PROMETHEUS:
        pools = (thresholded(pool) for pool in args.node_pools)
        resources = {each for pool in pools for each in pool} - {"pods"}
        return Source(args.usage, tuple(sorted(resources)), tuple(sorted(args.query.items())))
    if isinstance(args, LowNodeUtilization | LowNodeLoad) and args.usage is UsageSource.KUBERNETES:
        return METRICS_API
    if isinstance(args, LowNodeLoad) and args.usage is UsageSource.NODE_METRIC:
        return NODE_METRICS
    return None


def sources(policy: DeschedulerPolicy) -> Iterator[Source]:
    """Yield what a policy's strategies want to know, each once."""
    strategies = (args for profile in policy.profiles for args in profile.balance)
    yield from dict.fromkeys(filter(None, map(source_of, strategies)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoad:
    """The measured load that a round knows.

    Attributes:
        loads: what is used, by source.
        before: what LowNodeLoad remembers, by profile.
        now: unix seconds.
        after: what it is to remember; filled as its profiles run.
    """

    loads: Mapping[Source, SmoothedLoad] = field(default_factory=dict)
    before: Mapping[str, Rounds] = field(default_factory=dict)
    now: float = 0.0
    after: dict[str, Rounds] = field(default_factory=dict)

    def rounds(self, profile: str) -> Rounds:
        """Return what a profile's LowNodeLoad remembers."""
        return self.before.get(profile, NO_ROUNDS)


def measured_load_of(cluster: ClusterState, policy: DeschedulerPolicy, now: float) -> MeasuredLoad:
    """Return the load that a dump has, for whatever source its policy asks."""
    pods = {}
    for name, containers in cluster.pod_usage.items():
        total: dict[str, float] = {}
        for usage in containers:
            for resource, amount in usage.items():
                total[resource] = total.get(resource, 0.0) + amount
        pods[name] = total
    nodes = {
        name: Average(dict(usage), now, now, 0.0) for name, usage in cluster.node_usage.items()
    }
    load = SmoothedLoad(nodes=nodes, pods=pods)
    return MeasuredLoad(loads=dict.fromkeys(sources(policy), load), now=now)
