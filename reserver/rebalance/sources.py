"""The metrics sources that the strategies of a policy read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reserver.rebalance.arguments.load import LowNodeLoad
from reserver.rebalance.arguments.utilization import LowNodeUtilization, UsageSource
from reserver.rebalance.policy import Policy
from reserver.rebalance.weighed import thresholded


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
    return None


def sources(policy: Policy) -> Iterator[Source]:
    """Yield what a policy's strategies want to know, each once."""
    strategies = (args for profile in policy.profiles for args in profile.balance)
    yield from dict.fromkeys(filter(None, map(source_of, strategies)))
