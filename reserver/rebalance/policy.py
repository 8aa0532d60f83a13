"""A descheduler policy as values: `descheduler/v1alpha2`.

`rebalance/policy_reader.py` reads it; defaults are set and names are resolved by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.rebalance.arguments.base import Args
from reserver.rebalance.arguments.evictor import UNCONFIGURED, DefaultEvictor
from reserver.rebalance.arguments.load import LowNodeLoad
from reserver.rebalance.arguments.placement import (
    RemoveDuplicates,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
    RemovePodsViolatingTopologySpreadConstraint,
)
from reserver.rebalance.arguments.recycling import (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from reserver.rebalance.arguments.utilization import HighNodeUtilization, LowNodeUtilization
from reserver.rebalance.policy_schema import PrometheusDocument

Arguments = (
    RemoveDuplicates
    | LowNodeUtilization
    | HighNodeUtilization
    | RemovePodsViolatingInterPodAntiAffinity
    | RemovePodsViolatingNodeAffinity
    | RemovePodsViolatingNodeTaints
    | RemovePodsViolatingTopologySpreadConstraint
    | RemovePodsHavingTooManyRestarts
    | PodLifeTime
    | RemoveFailedPods
    | LowNodeLoad
)
"""Of a strategy; the type says which one."""

EVICTOR = DefaultEvictor.NAME

_DESCHEDULE: tuple[type[Args], ...] = (
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
_BALANCE: tuple[type[Args], ...] = (
    RemoveDuplicates,
    RemovePodsViolatingTopologySpreadConstraint,
    LowNodeUtilization,
    HighNodeUtilization,
    LowNodeLoad,
)

_PLUGINS: tuple[type[Args], ...] = (DefaultEvictor, *_DESCHEDULE, *_BALANCE)

PLUGINS: Mapping[str, type[Args]] = {kind.NAME: kind for kind in _PLUGINS}
"""The arguments of each plugin that a policy can name (setupplugins.go)."""

POINTS: Mapping[str, frozenset[str]] = {
    "deschedule": frozenset(kind.NAME for kind in _DESCHEDULE),
    "balance": frozenset(kind.NAME for kind in _BALANCE),
    "filter": frozenset({EVICTOR}),
    "preevictionfilter": frozenset({EVICTOR}),
}
"""The plugins of each extension point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Strategies that share one evictor.

    Attributes:
        name: appears in events and metrics.
        evictor: which pods may be evicted.
        deschedule: strategies that judge a pod by itself, in order; they run before all `balance`.
        balance: strategies that compare nodes, in order.
    """

    name: str
    evictor: DefaultEvictor = UNCONFIGURED
    deschedule: tuple[Arguments, ...] = ()
    balance: tuple[Arguments, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionLimits:
    """How many pods one cycle may evict, over all profiles; None: as many as it likes; 0: none."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None


NO_LIMITS = EvictionLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeschedulerPolicy:
    """A whole policy file.

    Attributes:
        profiles: all ``deschedule`` of all of them run first, then all ``balance``.
        node_selector: nodes that strategies are shown.
        limits: how many pods a cycle may evict.
        grace_period_seconds: of each eviction; None for the pod's own.
        eviction_failure_event_notification: an eviction that fails is an event as well.
        prometheus: where load is read, if a strategy reads Prometheus.
    """

    profiles: tuple[Profile, ...] = ()
    node_selector: Selector = EVERYTHING
    limits: EvictionLimits = NO_LIMITS
    grace_period_seconds: int | None = None
    eviction_failure_event_notification: bool = False
    prometheus: PrometheusDocument | None = None

    def with_most_moves(self, most: int | None) -> DeschedulerPolicy:
        """Return the policy with no more moves than so many; None for what it allows."""
        allowed = [each for each in (self.limits.total, most) if each is not None]
        return replace(self, limits=replace(self.limits, total=min(allowed, default=None)))
