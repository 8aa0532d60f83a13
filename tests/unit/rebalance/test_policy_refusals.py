"""The refused fields of a policy, and the fields without effect."""

from __future__ import annotations

import pytest

from tests.unit.rebalance.policies import HEAD, JSON, configured, reading

PROMETHEUS = "{url: prometheus, authToken: {secretReference: {name: s}}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apiVersion: descheduler/v1alpha1", "apiVersion: 'descheduler/v1alpha1' is not known"),
        ("apiVersion: descheduler/v1alpha2\nkind: Pod", "kind: 'Pod' is not known"),
        ("apiVersion: []", "apiVersion: [] is not known; write descheduler/v1alpha2"),
        ("apiVersion: descheduler/v1alpha2\nkind: 0", "kind: 0 is not known"),
        ("- a", "is not a mapping"),
        (f"{JSON}}} junk", "invalid JSON"),
        ("{apiVersion: descheduler/v1alpha2}", "invalid JSON"),
        (f'{JSON},"gracePeriodSeconds":1.0}}', "gracePeriodSeconds: 1.0 is not a whole number"),
        (f"{HEAD}\tx: 1", "invalid YAML"),
        (f"{HEAD}~: b", "~ is not the name of a field"),
        (f"{HEAD}a: b\na: c", "a: is given twice; remove one of them"),
        (f'{JSON},"profiles":[{{"name":"a","name":"b"}}]}}', "profiles[0].name: is given twice"),
        (
            configured("DefaultEvictor", "{nodeFit: true, nodeFit: false}"),
            "profiles[0].pluginConfig[0].args.nodeFit: is given twice",
        ),
        (
            configured("DefaultEvictor", "{nodeFit: yes}"),
            "profiles[0].pluginConfig[0].args.nodeFit: yes is a boolean in YAML 1.1",
        ),
        (f"{HEAD}x: .inf", ".inf is not a JSON number"),
        (f"{HEAD}profiles: 5", "profiles: 5 is not a list; write each item after a dash"),
        (f"{HEAD}nodeSelector: 5", "nodeSelector: 5 is not a text; write it in quotes"),
        (f"{HEAD}nodeSelector: a=(", "nodeSelector: 'a=(' has no comma"),
        (f"{HEAD}maxNoOfPodsToEvictTotal: -1", "maxNoOfPodsToEvictTotal: -1 is not in range"),
        (f"{HEAD}profiles: [{{plugins: {{sort: {{disabled: [9]}}}}}}]", "disabled[0]: 9 is not"),
        (
            f"{HEAD}profiles: [{{plugins: {{balance: {{enabled: [PodLifeTime]}}}}}}]",
            "'PodLifeTime' is not a plugin of balance; enable it at deschedule",
        ),
        (
            f"{HEAD}profiles: [{{plugins: {{deschedule: {{enabled: [PodLifeTime]}}}}}}]",
            "PodLifeTime has no pluginConfig; write - name: PodLifeTime",
        ),
        (f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [null]}}}}}}]", "'' is not a plugin"),
        (f"{HEAD}profiles: [{{pluginConfig: [{{args: {{}}}}]}}]", "name: '' is not a plugin"),
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
        (configured("PodLifeTime", "{conditions: [{}]}"), "conditions[0]: has no criterion"),
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
