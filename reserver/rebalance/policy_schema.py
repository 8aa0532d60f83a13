"""The outer document of a policy file as it is written (pkg/api/v1alpha2/types.go)."""

from __future__ import annotations

from typing import Any

import msgspec

from reserver.rebalance.arguments.base import Int64, PolicyPart, UInt


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
    """A Secret."""

    namespace: str = ""
    name: str = ""


class AuthToken(PolicyPart, frozen=True):
    """A token for Prometheus."""

    secret_reference: SecretReference | None = None


class PrometheusDocument(PolicyPart, frozen=True):
    """The address of Prometheus."""

    url: str = ""
    auth_token: AuthToken | None = None


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
