"""Policy files, as descheduler v0.36 takes and refuses them.

What is expected here is what upstream's own code said (hack/descheduler).
"""

from __future__ import annotations

import pytest

from reserver.cluster.labels import EVERYTHING
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
from reserver.rebalance.arguments.selecting import Choice
from reserver.rebalance.arguments.utilization import UsageSource
from reserver.rebalance.policy import EvictionLimits, MetricsProvider, Policy, SecretRef
from reserver.wire.rebalance import document
from reserver.wire.rebalance.policyform import Reading, read

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


def reading(text: str) -> Reading:
    return read(text.encode(), {"high": 1_000_000, "extreme": 2_000_001_000}.get)


def configured(plugin: str, args: str, point: str = "") -> str:
    enabled = f"\n  plugins: {{{point}: {{enabled: [{plugin}]}}}}" if point else ""
    config = f"pluginConfig:\n  - name: {plugin}\n    args: {args}"
    return f"{HEAD}profiles:\n- name: p\n  {config}{enabled}"


def policy(text: str) -> Policy:
    found = reading(text)
    assert not found.problems
    assert found.policy is not None
    return found.policy


def evictor(args: str) -> DefaultEvictor:
    return policy(configured("DefaultEvictor", args)).profiles[0].evictor


PROMETHEUS = "{url: prometheus, authToken: {secretReference: {name: s}}}"
JSON = '{"apiVersion":"descheduler/v1alpha2","kind":"DeschedulerPolicy"'


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
        f"{HEAD}nodeSelector: !!str 5",
        f"{HEAD}nodeSelector: 2001-01-01",
        f"{HEAD}maxNoOfPodsToEvictPerNode: 1.0",
        f"{HEAD}maxNoOfPodsToEvictPerNode: null",
        f"{HEAD}maxNoOfPodsToEvictPerNode: 0x10",
        f"{HEAD}gracePeriodSeconds: -5",
        f"{HEAD}a: b\na: c",
        f"{HEAD}profiles: [null]",
        f"{HEAD}profiles: [{{name: x, plugins: null, pluginConfig: null}}]",
        f"{HEAD}profiles: [{{plugins: {{presort: {{disabled: [x]}}, sort: {{enabled: [x]}}}}}}]",
        f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [DefaultEvictor]}}}}}}]",
        f"{HEAD}metricsProviders: [{{source: Other}}]",
        configured("DefaultEvictor", "null"),
        configured("DefaultEvictor", "{nodeFit: yes, apiVersion: v1, kind: Pod}"),
        configured("DefaultEvictor", "{nodeFit: true, nodeFit: false}"),
        configured("DefaultEvictor", "{nodeSelector: 'a=('}"),
        configured("DefaultEvictor", "{minPodAge: -5m}"),
        configured("DefaultEvictor", "{priorityThreshold: {value: -1, name: ''}}"),
        configured("RemovePodsViolatingNodeAffinity", "{nodeAffinityType: [other]}"),
    ],
)
def test_what_upstream_takes_is_taken(text: str) -> None:
    assert not reading(text).problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apiVersion: descheduler/v1alpha1", "apiVersion: 'descheduler/v1alpha1' is not known"),
        ("apiVersion: descheduler/v1alpha2\nkind: Pod", "kind: 'Pod' is not known"),
        ("apiVersion: []", "apiVersion: [] is not known; write descheduler/v1alpha2"),
        ("apiVersion: descheduler/v1alpha2\nkind: 0", "kind: 0 is not known"),
        ("- a", "is no mapping"),
        (f"{JSON}}} junk", "invalid JSON"),
        ("{apiVersion: descheduler/v1alpha2}", "invalid JSON"),
        (f'{JSON},"gracePeriodSeconds":1.0}}', "gracePeriodSeconds: 1.0 is not a whole number"),
        (f"{HEAD}\tx: 1", "invalid YAML"),
        (f"{HEAD}~: b", "is not the name of a field"),
        (f"{HEAD}x: .inf", ".inf is not a number that JSON knows"),
        (f"{HEAD}profiles: 5", "profiles: 5 is not a list; write each item after a dash"),
        (f"{HEAD}nodeSelector: 5", "nodeSelector: 5 is not a text; write it in quotes"),
        (f"{HEAD}nodeSelector: a=(", "nodeSelector: 'a=(' has no comma"),
        (f"{HEAD}maxNoOfPodsToEvictTotal: -1", "maxNoOfPodsToEvictTotal: -1 is not in range"),
        (f"{HEAD}profiles: [{{plugins: {{sort: {{disabled: [9]}}}}}}]", "disabled[0]: 9 is not"),
        (
            f"{HEAD}profiles: [{{plugins: {{balance: {{enabled: [PodLifeTime]}}}}}}]",
            "'PodLifeTime' is no plugin of balance; enable it at deschedule",
        ),
        (
            f"{HEAD}profiles: [{{plugins: {{deschedule: {{enabled: [PodLifeTime]}}}}}}]",
            "PodLifeTime has no pluginConfig; write - name: PodLifeTime",
        ),
        (f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [null]}}}}}}]", "'' is no plugin"),
        (f"{HEAD}profiles: [{{pluginConfig: [{{args: {{}}}}]}}]", "name: '' is no plugin"),
        (f"{HEAD}metricsProviders: [{{source: X}}, {{source: X}}]", "source: 'X' is given twice"),
        (
            (
                f"{HEAD}metricsCollector: {{enabled: true}}\n"
                "metricsProviders: [{source: KubernetesMetrics}]"
            ),
            "metricsCollector: is enabled beside a provider KubernetesMetrics",
        ),
        (f"{HEAD}metricsProviders: [{{source: Prometheus}}]", "prometheus.url: is missing"),
        (
            f"{HEAD}metricsProviders: [{{source: Prometheus, prometheus: {{url: 'a%zz'}}}}]",
            "'a%zz' is not a URL",
        ),
        (
            f"{HEAD}metricsProviders:\n- source: Prometheus\n  prometheus: {PROMETHEUS}",
            "does not name a Secret",
        ),
        (configured("DefaultEvictor", "[]"), "args: a list is not a mapping"),
        (
            configured("DefaultEvictor", "{nodefit: true}"),
            "args.nodefit: is not a field; write nodeFit",
        ),
        (configured("DefaultEvictor", "{minPodAge: 5}"), "minPodAge: 5 is not a text"),
        (configured("DefaultEvictor", "{minPodAge: 5d}"), "minPodAge: '5d' is not a duration"),
        (configured("DefaultEvictor", f"{{minPodAge: '{'1' * 200_000}'}}"), "is not a duration"),
        (
            configured("DefaultEvictor", "{priorityThreshold: {value: 1, name: high}}"),
            "has value 1 and name 'high'; write one of them",
        ),
        (
            configured("DefaultEvictor", "{priorityThreshold: {name: none}}"),
            "there is no PriorityClass 'none'",
        ),
        (
            configured("DefaultEvictor", "{priorityThreshold: {name: extreme}}"),
            "2000001000 is above 2000000000",
        ),
        (configured("DefaultEvictor", "{noEvictionPolicy: Never}"), "'Never' is not known"),
        (
            configured(
                "DefaultEvictor",
                "{ignorePvcPods: true, podProtections: {extraEnabled: [PodsWithPVC]}}",
            ),
            "ignorePvcPods: is given beside podProtections",
        ),
        (
            configured("DefaultEvictor", "{podProtections: {extraEnabled: [DaemonSetPods]}}"),
            "extraEnabled: 'DaemonSetPods' is not known; write PodsWithPVC, PodsWithResourceClaims",
        ),
        (
            configured(
                "DefaultEvictor",
                "{podProtections: {defaultDisabled: [DaemonSetPods, DaemonSetPods]}}",
            ),
            "has an entry twice",
        ),
        (
            configured(
                "DefaultEvictor",
                "{labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}}",
            ),
            "matchExpressions[0].operator: 'Gt' is not an operator",
        ),
        (configured("PodLifeTime", "{}"), "no criterion is given"),
        (configured("PodLifeTime", "{states: [Tired]}"), "states: 'Tired' is not known"),
        (configured("PodLifeTime", "{conditions: [{}]}"), "conditions[0]: asks for nothing"),
        (
            configured("RemoveDuplicates", "{namespaces: {include: [a], exclude: [b]}}"),
            "namespaces: has include and exclude",
        ),
        (configured("RemovePodsHavingTooManyRestarts", "{}"), "0 is less than 1"),
        (configured("RemovePodsViolatingNodeAffinity", "{}"), "nodeAffinityType: is missing"),
        (
            configured(
                "RemovePodsViolatingNodeTaints", "{includedTaints: [a], excludedTaints: [b]}"
            ),
            "includedTaints: is given beside excludedTaints",
        ),
        (
            configured("RemovePodsViolatingTopologySpreadConstraint", "{constraints: [Maybe]}"),
            "constraints: 'Maybe' is not known; write DoNotSchedule, ScheduleAnyway",
        ),
        (configured("HighNodeUtilization", "{}"), "thresholds: has no resource"),
        (
            configured(
                "LowNodeUtilization", "{thresholds: {cpu: 60}, targetThresholds: {cpu: 50}}"
            ),
            "thresholds.cpu: 60 is above the 50 of the upper threshold",
        ),
        (
            configured(
                "LowNodeUtilization", "{thresholds: {cpu: 10}, targetThresholds: {memory: 50}}"
            ),
            "thresholds and targetThresholds differ in cpu, memory",
        ),
        (
            configured("HighNodeUtilization", "{thresholds: {cpu: 101}}"),
            "thresholds.cpu: 101 is out of range",
        ),
        (
            configured("LowNodeLoad", "{lowThresholds: {cpu: 10}}"),
            "highThresholds: has no resource",
        ),
        (
            configured(
                "LowNodeLoad",
                "{lowThresholds: {cpu: 1}, highThresholds: {cpu: 2},"
                " anomalyCondition: {timeout: soon}}",
            ),
            "anomalyCondition.timeout: 'soon' is not a duration",
        ),
    ],
)
def test_what_upstream_refuses_is_refused_with_field_value_and_remedy(
    text: str, expected: str
) -> None:
    found = reading(text)
    assert found.policy is None
    assert expected in str(found.problems[0])
    assert all(each.remedy for each in found.problems)


def test_a_stage_tells_all_that_it_finds() -> None:
    text = f"""{HEAD}profiles:
- name: p
  pluginConfig:
  - name: Nope
  - name: PodLifeTime
  - name: RemovePodsHavingTooManyRestarts
    args: {{states: [Tired]}}
  plugins: {{balance: {{enabled: [Nope]}}}}
"""
    assert [each.path for each in reading(text).problems] == [
        "profiles[0].pluginConfig[0].name",
        "profiles[0].pluginConfig[1].args",
        "profiles[0].pluginConfig[2].args.podRestartThreshold",
        "profiles[0].pluginConfig[2].args.states",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEAD}ignorePvcPods: true", "ignorePvcPods: is not a field, and ignored"),
        (
            f"{HEAD}profiles: [{{plugins: {{preEvictionFilter: {{}}}}}}]",
            "preEvictionFilter: is not a field, and ignored; write preevictionfilter",
        ),
        (
            f"{HEAD}profiles: [{{pluginConfig: [{{name: DefaultEvictor, nodeFit: true}}]}}]",
            "profiles[0].pluginConfig[0].nodeFit: is not a field, and ignored",
        ),
        (f"{HEAD}profiles: [{{plugins: {{sort: {{enabled: [x]}}}}}}]", "sort.enabled: is ignored"),
        (
            f"{HEAD}profiles: [{{plugins: {{balance: {{disabled: ['*']}}}}}}]",
            "balance.disabled: is ignored",
        ),
        (f"{HEAD}nodeSelector: a\nnodeSelector: b", "only the last one counts"),
        (f"{HEAD}---\n{HEAD}", "only the first document is read"),
        ("kind: DeschedulerPolicy\nprofiles: []", "apiVersion: is missing, so upstream reads"),
        (configured("RemoveDuplicates", "{}"), "RemoveDuplicates is not enabled"),
        (configured("DefaultEvictor", "{minReplicas: 1}"), "minReplicas: 1 has no effect"),
        (
            configured("DefaultEvictor", "{nodeFit: true, nodeSelector: 'a=('}"),
            "so no pod fits on any node",
        ),
        (
            configured(
                "DefaultEvictor",
                "{evictSystemCriticalPods: true, priorityThreshold: {value: 5}}",
            ),
            "priorityThreshold: has no effect while SystemCriticalPods is off",
        ),
        (
            configured("RemovePodsViolatingNodeAffinity", "{nodeAffinityType: [x]}", "deschedule"),
            "nodeAffinityType: 'x' is not known",
        ),
        (f"{HEAD}metricsProviders: [{{source: Other}}]", "'Other' is not known, and ignored"),
        (f"{HEAD}gracePeriodSeconds: -5", "-5 is negative"),
    ],
)
def test_what_has_no_effect_is_a_warning(text: str, expected: str) -> None:
    found = reading(text)
    assert not found.problems
    assert [str(each) for each in found.warnings if expected in str(each)]


def test_a_whole_policy_is_read() -> None:
    found = policy(
        f"""{HEAD}
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
- name: two
"""
    )
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
    assert found.metrics_providers == (
        MetricsProvider(
            source=UsageSource.PROMETHEUS,
            url="http://p:9090",
            token=SecretRef(namespace="ns", name="s"),
        ),
        MetricsProvider(source=UsageSource.KUBERNETES),
    )


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


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("yes", True),
        ("OFF", False),
        ("~", None),
        ("010", 8),
        ("0o10", 8),
        ("09", 9),
        ("1_000", 1000),
        ("-0x1F", -31),
        ("0b11", 3),
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("+3", 3),
        ("1e999", "1e999"),
        ("12:30", "12:30"),
        ("2001-01-01", "2001-01-01"),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!mine 5", "5"),
        ("!!int '5'", 5),
        ("18446744073709551616", 18446744073709551616),
    ],
)
def test_a_scalar_is_what_go_yaml_makes_of_it(written: str, expected: object) -> None:
    value, _ = document.parse(f"x: {written}".encode())
    assert value == {"x": expected}
    assert type(value["x"]) is type(expected)


def test_merge_keys_and_aliases_are_followed_in_the_order_of_the_file() -> None:
    value, _ = document.parse(b"a: &a {x: 1, z: 1}\nb: {x: 2, <<: *a}\nc: {<<: [*a], z: 3}")
    assert value == {"a": {"x": 1, "z": 1}, "b": {"x": 1, "z": 1}, "c": {"x": 1, "z": 3}}


BOMB = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"x" * (document.MOST_BYTES + 1), "bytes are too many"),
        (b"\xff\xfe", "is not UTF-8"),
        (BOMB.encode(), "has more than 65536 values"),
        (b"[" * 100_000, "deeper than 32"),
        (b"[" * 40 + b"]" * 40, "deeper than 32"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "deeper than 32"),
        (b'{"a":' * 5_000, "deeper than 32"),
        (b"a: &a [*a]", "deeper than 32"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "out of range"),
        (b'{"a": NaN}', "not a number that JSON knows"),
    ],
)
def test_a_document_that_costs_too_much_is_refused(raw: bytes, expected: str) -> None:
    (problem,) = read(raw, lambda _: None).problems
    assert expected in problem.problem
