"""A descheduler policy, `descheduler/v1alpha2`: the document, and its values.

The document follows pkg/api/v1alpha2/types.go. `rebalance/policy_reader.py` reads it, sets defaults
and resolves names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.arguments.base import Args, Int64, PolicyPart, Problems, UInt
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
from reserver.rebalance.arguments.utilization import (
    MEASURED,
    HighNodeUtilization,
    LowNodeUtilization,
    UsageSource,
)

_BROKEN_URL = re.compile(
    r"[\x00-\x1f\x7f]|^:|^[^?#]*%(?![0-9a-fA-F]{2})|^[^:/?#]+://[^/?#]*(\s|:[^0-9/?#\]]+)"
)
"""URLs that Go's `url.Parse` refuses."""


class PluginConfig(PolicyPart, frozen=True):
    """One entry of ``pluginConfig``; its ``args`` are read by the plugin that it names."""

    name: str = ""
    args: Any = None


class PluginSet(PolicyPart, frozen=True):
    """The plugins of an extension point; nobody reads ``disabled``."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class Plugins(PolicyPart, frozen=True):
    """The extension points of a profile; nobody reads ``presort`` and ``sort``."""

    presort: PluginSet = msgspec.field(default_factory=PluginSet)
    sort: PluginSet = msgspec.field(default_factory=PluginSet)
    deschedule: PluginSet = msgspec.field(default_factory=PluginSet)
    balance: PluginSet = msgspec.field(default_factory=PluginSet)
    filter: PluginSet = msgspec.field(default_factory=PluginSet)
    preevictionfilter: PluginSet = msgspec.field(default_factory=PluginSet)


class ProfileDocument(PolicyPart, frozen=True):
    """One entry of ``profiles``."""

    name: str = ""
    plugin_config: tuple[PluginConfig, ...] = ()
    plugins: Plugins = msgspec.field(default_factory=Plugins)


class MetricsCollector(PolicyPart, frozen=True):
    """Deprecated: as a provider KubernetesMetrics."""

    enabled: bool = False


class SecretReference(PolicyPart, frozen=True):
    """A Secret, whose key ``prometheusAuthToken`` has a token."""

    namespace: str = ""
    name: str = ""


class AuthToken(PolicyPart, frozen=True):
    """A token for Prometheus."""

    secret_reference: SecretReference | None = None


class PrometheusDocument(PolicyPart, frozen=True):
    """The address of Prometheus."""

    url: str = ""
    auth_token: AuthToken | None = None

    @property
    def secret(self) -> SecretReference | None:
        """The Secret with the token; None for the token of Reserver's own service account."""
        return self.auth_token.secret_reference if self.auth_token else None

    def problems(self) -> Problems:
        """Yield what upstream refuses."""
        if not self.url:
            yield InvalidInput("url", "is missing", "write the URL of Prometheus")
        elif _BROKEN_URL.search(self.url):
            problem = f"{shorten(repr(self.url))} is not a URL"
            yield InvalidInput("url", problem, "write e.g. http://prometheus.monitoring:9090")
        secret = self.secret
        if self.auth_token and not (secret and secret.name and secret.namespace):
            path = "authToken.secretReference"
            yield InvalidInput(path, "does not name a Secret", "write namespace and name")


class MetricsProviderDocument(PolicyPart, frozen=True):
    """One entry of ``metricsProviders``."""

    source: str = ""
    prometheus: PrometheusDocument | None = None


class PolicyDocument(PolicyPart, frozen=True):
    """The outer document."""

    api_version: str = ""
    kind: str = ""
    profiles: tuple[ProfileDocument, ...] = ()
    node_selector: str | None = None
    max_no_of_pods_to_evict_per_node: UInt | None = None
    max_no_of_pods_to_evict_per_namespace: UInt | None = None
    max_no_of_pods_to_evict_total: UInt | None = None
    eviction_failure_event_notification: bool = False
    metrics_collector: MetricsCollector | None = None
    metrics_providers: tuple[MetricsProviderDocument, ...] = ()
    grace_period_seconds: Int64 | None = None

    @property
    def prometheus(self) -> PrometheusDocument | None:
        """The Prometheus where load can be read."""
        found = (e.prometheus for e in self.metrics_providers if e.source == UsageSource.PROMETHEUS)
        return next(found, None)

    def problems(self) -> Problems:
        """Yield what upstream refuses of the sources of load."""
        sources = set[str]()
        for index, each in enumerate(self.metrics_providers):
            path = f"metricsProviders[{index}]"
            if each.source in sources:
                problem = f"{shorten(repr(each.source))} is given twice"
                yield InvalidInput(f"{path}.source", problem, "remove one of them")
                continue
            sources.add(each.source)
            if each.source == UsageSource.PROMETHEUS:
                for found in (each.prometheus or PrometheusDocument()).problems():
                    yield found.under(f"{path}.prometheus")
        is_collected = self.metrics_collector is not None and self.metrics_collector.enabled
        if is_collected and UsageSource.KUBERNETES in sources:
            problem = f"is enabled beside a provider {UsageSource.KUBERNETES}"
            yield InvalidInput("metricsCollector", problem, "remove it")

    def warnings(self) -> Problems:
        """Yield accepted fields that have no effect."""
        for index, each in enumerate(self.metrics_providers):
            if each.source not in MEASURED:
                problem = f"{shorten(repr(each.source))} is not known, and ignored"
                remedy = f"write {' or '.join(MEASURED)}"
                yield InvalidInput(f"metricsProviders[{index}].source", problem, remedy)
        if self.grace_period_seconds is not None and self.grace_period_seconds < 0:
            problem = f"{self.grace_period_seconds} is negative: the API server refuses evictions"
            yield InvalidInput("gracePeriodSeconds", problem, "write 0 or more")


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
    """Most evictions of one cycle, over all profiles; None: unlimited; 0: none."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None


NO_LIMITS = EvictionLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeschedulerPolicy:
    """A whole policy file.

    Attributes:
        profiles: the strategies, and the evictors that they share.
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

    @property
    def turns(self) -> list[tuple[Profile, Arguments]]:
        """The strategies in the order in which they run, each with its profile."""
        turns = [(profile, args) for profile in self.profiles for args in profile.deschedule]
        return turns + [(profile, args) for profile in self.profiles for args in profile.balance]

    def with_most_moves(self, most: int | None) -> DeschedulerPolicy:
        """Return the policy with at most `most` moves; None keeps the limit of the policy."""
        allowed = [each for each in (self.limits.total, most) if each is not None]
        return replace(self, limits=replace(self.limits, total=min(allowed, default=None)))
