"""Policy files, as descheduler v0.36 takes and refuses them.

The expectations are the output of upstream's own code (hack/descheduler).
"""

from __future__ import annotations

import pytest

from reserver.cluster.labels import EVERYTHING
from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.arguments.evictor import (
    DEFAULT_PROTECTIONS,
    SYSTEM_CRITICAL,
    UNCONFIGURED,
    DefaultEvictor,
    Protection,
)
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad
from reserver.rebalance.arguments.placement import RemoveDuplicates, RemovePodsViolatingNodeTaints
from reserver.rebalance.arguments.recycling import PodLifeTime, RemoveFailedPods
from reserver.rebalance.policy import DeschedulerPolicy, EvictionLimits, SecretReference
from tests.unit.rebalance.policies import HEAD, JSON, configured, reading


def policy(text: str) -> DeschedulerPolicy:
    found = reading(text)
    assert not found.problems
    assert found.policy is not None
    return found.policy


def evictor(args: str) -> DefaultEvictor:
    return policy(configured("DefaultEvictor", args)).profiles[0].evictor


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        "apiVersion: descheduler/v1alpha2\n",
        "",
        f"{JSON}}}",
        f" \n{JSON}}}",
        f"---\n{HEAD}---\nfoo: [",
        f"%YAML 1.1\n---\n{HEAD}",
        f"\ufeff{HEAD}",
        f"{HEAD}nodeSelector: ''",
        f"{HEAD}nodeSelector: 2001-01-01",
        f"{HEAD}maxNoOfPodsToEvictPerNode: 1.0",
        f"{HEAD}maxNoOfPodsToEvictPerNode: null",
        f"{HEAD}gracePeriodSeconds: -5",
        f"{HEAD}profiles: [null]",
        f"{HEAD}profiles: [{{name: x, plugins: null, pluginConfig: null}}]",
        f"{HEAD}profiles: [{{plugins: {{presort: {{disabled: [x]}}, sort: {{enabled: [x]}}}}}}]",
        f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [DefaultEvictor]}}}}}}]",
        f"{HEAD}metricsProviders: [{{source: Other}}]",
        configured("DefaultEvictor", "null"),
        configured("DefaultEvictor", "{nodeFit: true, apiVersion: v1, kind: Pod}"),
        configured("DefaultEvictor", "{nodeSelector: 'a=('}"),
        configured("DefaultEvictor", "{minPodAge: -5m}"),
        configured("DefaultEvictor", "{priorityThreshold: {value: -1, name: ''}}"),
        configured("RemovePodsViolatingNodeAffinity", "{nodeAffinityType: [other]}"),
    ],
)
def test_what_upstream_takes_is_taken(text: str) -> None:
    assert not reading(text).problems


WHOLE = f"""{HEAD}
nodeSelector: zone in (a,b)
maxNoOfPodsToEvictPerNode: 1
maxNoOfPodsToEvictPerNamespace: 2
maxNoOfPodsToEvictTotal: 3
gracePeriodSeconds: 0
evictionFailureEventNotification: true
metricsCollector: {{enabled: true}}
metricsProviders:
- source: Prometheus
  prometheus: {{url: "http://p:9090", authToken: {{secretReference: {{namespace: ns, name: s}}}}}}
profiles:
- name: one
  pluginConfig:
  - {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: 60, states: [Running]}}}}
  - {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: 1}}}}
  - {{name: RemoveFailedPods}}
  - {{name: RemoveDuplicates, args: {{namespaces: {{exclude: [kube-system]}}}}}}
  plugins:
    deschedule: {{enabled: [RemoveFailedPods, PodLifeTime]}}
    balance: {{enabled: [RemoveDuplicates]}}
- name: two"""


def test_a_whole_policy_is_read() -> None:
    found = policy(WHOLE)
    one, two = found.profiles
    assert one.deschedule == (
        RemoveFailedPods(min_pod_lifetime_seconds=3600),
        PodLifeTime(max_pod_life_time_seconds=60, states=frozenset({"Running"})),
    )
    excluded = Choice(exclude=frozenset({"kube-system"}))
    assert one.balance == (RemoveDuplicates(namespaces=excluded),)
    assert one.evictor == two.evictor == UNCONFIGURED
    assert found.limits == EvictionLimits(per_node=1, per_namespace=2, total=3)
    assert found.grace_period_seconds == 0
    assert found.node_selector.matches({"zone": "b"})
    assert not found.node_selector.matches({"zone": "c"})
    assert found.prometheus is not None
    assert found.prometheus.url == "http://p:9090"
    assert found.prometheus.secret == SecretReference(namespace="ns", name="s")


@pytest.mark.parametrize(
    ("args", "more", "less"),
    [
        ("{}", set(), set()),
        ("{evictFailedBarePods: true}", set(), {Protection.FAILED_BARE}),
        (
            "{ignorePvcPods: true, ignorePodsWithoutPDB: true}",
            {Protection.PVC, Protection.WITHOUT_PDB},
            set(),
        ),
        (
            "{podProtections: {defaultDisabled: [DaemonSetPods], extraEnabled: [PodsWithPVC]}}",
            {Protection.PVC},
            {Protection.DAEMON_SET},
        ),
    ],
)
def test_deprecated_fields_and_podprotections_say_the_same_thing(
    args: str, more: set[Protection], less: set[Protection]
) -> None:
    assert evictor(args).protections == DEFAULT_PROTECTIONS - less | more


def test_a_priority_class_becomes_its_number() -> None:
    assert evictor("{priorityThreshold: {name: high}}").priority_threshold == 1_000_000
    assert evictor("{priorityThreshold: {}}").priority_threshold == SYSTEM_CRITICAL


def test_no_included_taints_differ_from_an_absent_list() -> None:
    def included(args: str) -> frozenset[str] | None:
        text = configured("RemovePodsViolatingNodeTaints", args, "deschedule")
        (strategy,) = policy(text).profiles[0].deschedule
        assert isinstance(strategy, RemovePodsViolatingNodeTaints)
        return strategy.included_taints

    assert included("{includedTaints: []}") == frozenset()
    assert included("{}") is None
    assert included("{includedTaints: null}") is None


def test_thresholds_of_lownodeload_at_the_top_are_the_last_pool() -> None:
    text = configured(
        "LowNodeLoad",
        "{lowThresholds: {cpu: 1}, highThresholds: {cpu: 2},"
        " nodePools: [{name: a, lowThresholds: {cpu: 3}, highThresholds: {cpu: 4}}]}",
        "balance",
    )
    (strategy,) = policy(text).profiles[0].balance
    assert isinstance(strategy, LowNodeLoad)
    assert [(pool.name, pool.low_thresholds) for pool in strategy.node_pools] == [
        ("a", {"cpu": 3}),
        ("", {"cpu": 1}),
    ]
    assert strategy.node_pools[0].node_selector == EVERYTHING
    assert strategy.node_pools[0].anomaly_condition == AnomalyCondition()
