"""Reads ``metricsProviders`` of a policy file: where load is read."""

from __future__ import annotations

import re

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance import policy_schema as written
from reserver.rebalance.arguments.base import Problems
from reserver.rebalance.arguments.utilization import MEASURED, UsageSource
from reserver.rebalance.policy import MetricsProvider, SecretRef

_BROKEN_URL = re.compile(
    r"[\x00-\x1f\x7f]|^:|^[^?#]*%(?![0-9a-fA-F]{2})|^[^:/?#]+://[^/?#]*(\s|:[^0-9/?#\]]+)"
)
"""What Go's `url.Parse` refuses."""


def problems(policy: written.PolicyDocument) -> Problems:
    """Yield what upstream refuses."""
    providers: dict[str, written.MetricsProviderDocument] = {}
    for index, each in enumerate(policy.metrics_providers):
        path = f"metricsProviders[{index}]"
        if each.source in providers:
            problem = f"{shorten(repr(each.source))} is given twice"
            yield InvalidInput(f"{path}.source", problem, "remove one of them")
            continue
        providers[each.source] = each
        if each.source == UsageSource.PROMETHEUS:
            yield from _prometheus_problems(f"{path}.prometheus", each.prometheus)
    is_collected = policy.metrics_collector and policy.metrics_collector.enabled
    if is_collected and UsageSource.KUBERNETES in providers:
        problem = f"is enabled beside a provider {UsageSource.KUBERNETES}"
        yield InvalidInput("metricsCollector", problem, "remove it")


def _prometheus_problems(path: str, prometheus: written.PrometheusDocument | None) -> Problems:
    if prometheus is None or not prometheus.url:
        yield InvalidInput(f"{path}.url", "is missing", "write the URL of Prometheus")
    elif _BROKEN_URL.search(prometheus.url):
        problem = f"{shorten(repr(prometheus.url))} is not a URL"
        yield InvalidInput(f"{path}.url", problem, "write e.g. http://prometheus.monitoring:9090")
    token = prometheus.auth_token if prometheus else None
    secret = token.secret_reference if token else None
    if token and not (secret and secret.name and secret.namespace):
        path = f"{path}.authToken.secretReference"
        yield InvalidInput(path, "does not name a Secret", "write namespace and name")


def warnings(policy: written.PolicyDocument) -> Problems:
    """Yield what is accepted and has no effect."""
    for index, each in enumerate(policy.metrics_providers):
        if each.source not in MEASURED:
            problem = f"{shorten(repr(each.source))} is not known, and ignored"
            remedy = f"write {' or '.join(MEASURED)}"
            yield InvalidInput(f"metricsProviders[{index}].source", problem, remedy)


def providers(policy: written.PolicyDocument) -> tuple[MetricsProvider, ...]:
    """Return where load can be read."""
    found = [_provider(each) for each in policy.metrics_providers if each.source in MEASURED]
    if policy.metrics_collector and policy.metrics_collector.enabled:
        found.append(MetricsProvider(source=UsageSource.KUBERNETES))
    return tuple(found)


def _provider(each: written.MetricsProviderDocument) -> MetricsProvider:
    prometheus = each.prometheus or written.PrometheusDocument()
    token = prometheus.auth_token
    secret = token.secret_reference if token else None
    return MetricsProvider(
        source=UsageSource(each.source),
        url=prometheus.url,
        token=SecretRef(namespace=secret.namespace, name=secret.name) if secret else None,
    )
