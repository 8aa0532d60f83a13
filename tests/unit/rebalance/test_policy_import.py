"""Policies in the files of others: Helm values, and Koordinator's configuration."""

from __future__ import annotations

import pytest

from tests.unit.rebalance.policies import configured, reading

HELM = """
kind_of_job: x
schedule: "*/2 * * * *"
cmdOptions: {v: 3}
deschedulerPolicyAPIVersion: descheduler/v1alpha2
deschedulerPolicy:
  maxNoOfPodsToEvictTotal: 7
  profiles:
  - name: old
    pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 60}}]
    plugins: {deschedule: {enabled: [PodLifeTime]}}
"""

KOORDINATOR = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
leaderElection: {resourceName: koord-descheduler}
deschedulingInterval: 60s
dryRun: false
maxNoOfPodsToEvictPerNode: 3
nodeSelector:
  matchLabels: {pool: x}
  matchExpressions:
  - {key: zone, operator: NotIn, values: [a, b]}
  - {key: spot, operator: DoesNotExist}
profiles:
- name: koord-descheduler
  nodeSelector: {matchExpressions: [{key: arch, operator: Exists}]}
  plugins:
    deschedule: {disabled: [{name: "*"}]}
    balance: {enabled: [{name: LowNodeLoad}, {name: FragmentationAware}, {name: RemoveDuplicates}]}
    evict: {enabled: [{name: MigrationController}]}
  pluginConfig:
  - name: MigrationController
    args:
      kind: MigrationControllerArgs
      nodeFit: true
      evictLocalStoragePods: true
      maxMigratingPerNode: 4
      evictQPS: "10"
  - name: LowNodeLoad
    args:
      kind: LowNodeLoadArgs
      lowThresholds: {cpu: 45}
      highThresholds: {cpu: 70}
"""


def test_helm_values_are_read_as_the_policy_in_them() -> None:
    found = reading(HELM)
    assert not found.problems
    assert found.policy is not None
    assert found.policy.limits.total == 7
    (profile,) = found.policy.profiles
    assert [args.NAME for args in profile.deschedule] == ["PodLifeTime"]
    warnings = [str(each) for each in found.warnings]
    assert "schedule: is ignored; write it into the CronJob" in warnings
    assert "kind_of_job: is ignored; remove it" in warnings


def test_koordinators_configuration_is_read_and_what_is_ignored_is_said() -> None:
    found = reading(KOORDINATOR)
    assert not found.problems
    assert found.policy is not None
    (profile,) = found.policy.profiles
    assert [args.NAME for args in profile.balance] == ["LowNodeLoad", "RemoveDuplicates"]
    assert (profile.evictor.node_fit, found.policy.limits.per_node) == (True, 3)
    selector = found.policy.node_selector
    here = {"pool": "x", "arch": "arm"}
    assert selector.matches(here)
    for labels in ({"pool": "x"}, here | {"zone": "b"}, here | {"spot": ""}, {"arch": "arm"}):
        assert not selector.matches(labels)
    warnings = "\n".join(map(str, found.warnings))
    for ignored in (
        "deschedulingInterval: is ignored; give --descheduling-interval",
        "leaderElection: is ignored; give --leader-elect",
        "plugins.balance: FragmentationAware is ignored",
        "profiles[0].pluginConfig[0].args.maxMigratingPerNode: is ignored",
        "args.evictQPS: is ignored; give --client-connection-qps",
    ):
        assert ignored in warnings
    assert "MigrationController is ignored" not in warnings


def test_protections_of_koordinators_evictor_count() -> None:
    loose, strict = (
        reading(KOORDINATOR.replace("evictLocalStoragePods: true", text)).policy
        for text in ("evictLocalStoragePods: true", "evictLocalStoragePods: false")
    )
    assert loose is not None
    assert strict is not None
    assert loose.profiles[0].evictor != strict.profiles[0].evictor


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HELM.replace("{v: 3}", "{dry-run: true}"), "cmdOptions.dry-run: is not part of a policy"),
        (HELM.replace("PodsToEvictTotal: 7", "PodsToEvictTotal: x"), "deschedulerPolicy.maxNo"),
        (HELM.replace("Seconds: 60", "Seconds: [1]"), "deschedulerPolicy.profiles[0].plugin"),
        (HELM.replace("v1alpha2", "v1alpha1"), "apiVersion: 'descheduler/v1alpha1' is not known"),
        ("deschedulerPolicy: 5", "deschedulerPolicy: is not a mapping"),
        (KOORDINATOR.replace("dryRun: false", "dryRun: true"), "dryRun: is not part of a policy"),
        (KOORDINATOR.replace("nodeFit: true", "dryRun: true"), "args.dryRun: is not part"),
        (KOORDINATOR.replace("NotIn", "Near"), "matchExpressions: has an unknown operator"),
        (
            f"{KOORDINATOR}- name: other\n",
            "profiles[0].nodeSelector: would count for all profiles; write a file for each profile",
        ),
        (KOORDINATOR.replace("cpu: 45", "cpu: 90"), "args.lowThresholds.cpu: 90 is above"),
        (KOORDINATOR.replace("{name: LowNodeLoad}", "[]"), "has an entry without a name"),
        (KOORDINATOR.replace("enabled: [{name: Mig", "enabled: 5, x: [{name: Mig"), "not a list"),
        (KOORDINATOR.replace("values: [a, b]", "values: 5"), "matchExpressions.values: is not"),
        (KOORDINATOR.replace("profiles:", "profiles: 5\nx:"), "profiles: is not a list"),
    ],
)
def test_what_cannot_be_ignored_is_refused(text: str, problem: str) -> None:
    found = reading(text)
    assert found.policy is None
    assert problem in "\n".join(map(str, found.problems))


def test_a_policy_of_the_descheduler_is_read_as_before() -> None:
    found = reading(configured("PodLifeTime", "{maxPodLifeTimeSeconds: 60}", "deschedule"))
    assert (found.problems, found.warnings) == ((), ())
