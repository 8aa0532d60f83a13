"""The measured load that strategies read: its sources, its values, and the rounds before.

For how many rounds in a row a node has been hot or calm is counted as koord-descheduler counts
(pkg/descheduler/utils/anomaly), in values that one round hands to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad
from reserver.rebalance.arguments.utilization import LowNodeUtilization, UsageSource
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.node_load import thresholded
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.readings import Average


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
    if before.until is not None and not 0 <= before.until - now <= condition.timeout_s:
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


class Source(NamedTuple):
    """A metrics source that one or more strategies need.

    Attributes:
        kind: the metrics API.
        resources: the resources to read; empty if the source always returns all of them.
        queries: queries for amounts, by resource; Reserver's own query where one is missing.
        share: a query for shares of 1, as LowNodeUtilization has it; empty for amounts.
    """

    kind: UsageSource
    resources: tuple[str, ...] = ()
    queries: tuple[tuple[str, str], ...] = ()
    share: str = ""


METRICS_API = Source(UsageSource.KUBERNETES)
NODE_METRICS = Source(UsageSource.NODE_METRIC)


def source_of(args: object) -> Source | None:
    """Return the source of a strategy; None if the strategy reads requests."""
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
    """Yield the sources of a policy's strategies, each once."""
    strategies = (args for profile in policy.profiles for args in profile.balance)
    yield from dict.fromkeys(filter(None, map(source_of, strategies)))


def dumped_loads(
    cluster: ClusterState, policy: DeschedulerPolicy, now: float
) -> Mapping[Source, SmoothedLoad]:
    """Return the usage that a dump has, for each source that its policy asks."""
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
    return dict.fromkeys(sources(policy), SmoothedLoad(nodes=nodes, pods=pods))
