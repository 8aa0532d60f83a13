"""The placement constraints in a pod's spec."""

import pytest

from reserver.cluster.constraints import TOO_MANY
from reserver.cluster.labels import UNREAD
from reserver.cluster.pod import ClaimUse, Controller
from reserver.errors import InvalidInput
from tests.unit.k8s.pods import pod


@pytest.mark.parametrize(
    ("affinity", "spread", "preferences"),
    [
        (None, None, False),
        ({}, [], False),
        ({"nodeAffinity": None, "podAffinity": {}}, None, False),
        ({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}, None, False),
        ({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}, None, False),
        ({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}, None, True),
        ({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}, None, True),
        (
            {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}},
            None,
            True,
        ),
        (None, [{"whenUnsatisfiable": "DoNotSchedule"}], False),
        (None, [{"whenUnsatisfiable": "DoNotSchedule"}, {"maxSkew": 1}], False),
        (
            None,
            [{"whenUnsatisfiable": "DoNotSchedule"}, {"whenUnsatisfiable": "ScheduleAnyway"}],
            True,
        ),
    ],
)
def test_soft_constraints_are_preferences_and_hard_ones_are_not(
    affinity: object, spread: object, *, preferences: bool
) -> None:
    changes = {"spec__affinity": affinity, "spec__topologySpreadConstraints": spread}
    assert pod(**changes).value().has_preferences == preferences


def test_what_a_pod_says_of_itself_beside_resources_is_read() -> None:
    value = pod().value()
    assert value.labels == {"app": "web"}
    assert value.controller == ("", "")  # Its owner does not say that it is the controller.
    assert not value.terminating
    assert value.volume_claims == ()
    assert [toleration.key for toleration in value.constraints.tolerations] == ["x"]
    owners = [
        {"kind": "Node", "name": "n", "uid": "u"},
        {"kind": "Job", "name": "j", "uid": "v", "controller": True},
    ]
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
    value = pod(
        metadata__ownerReferences=owners,
        metadata__deletionTimestamp="2030-01-01T00:00:00Z",
        spec__volumes=volumes,
    ).value()
    assert value.controller == Controller("Job", "j")
    assert value.terminating
    assert value.volume_claims == (ClaimUse("data"), ClaimUse("web-0-b", is_ephemeral=True))


def test_pods_of_one_template_share_what_follows_from_it() -> None:
    one, other = pod().value(), pod(metadata__name="web-1").value()
    assert one.labels is other.labels
    assert one.constraints is other.constraints
    assert one.requests is other.requests


def test_what_is_absurdly_long_is_passed_over_and_the_pod_is_not() -> None:
    labels = {f"key-{number}": "x" * 63 for number in range(4000)}
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    value = pod(metadata__labels=labels, spec__affinity=affinity).value()
    assert value.labels is UNREAD
    assert value.constraints is TOO_MANY
    assert value.requests == pod().value().requests


def test_an_affinity_without_namespaces_is_about_the_pods_own() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    for namespace in ("shop", "other"):
        changes = {"metadata__namespace": namespace, "spec__affinity": {"podAffinity": required}}
        (read,) = pod(**changes).value().constraints.affinity
        assert read.namespaces == {namespace}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"metadata__labels": ["a"]}, "metadata.labels"),
        ({"metadata__ownerReferences": {"a": 1}}, "metadata.ownerReferences"),
        ({"spec__nodeSelector": {"a": 1}}, "spec.nodeSelector[...]"),
        ({"spec__affinity": {"nodeAffinity": 7}}, "spec.affinity.nodeAffinity"),
        ({"spec__tolerations": [{"key": 7}]}, "spec.tolerations[0].key"),
        (
            {"spec__topologySpreadConstraints": [{"maxSkew": "1"}]},
            "spec.topologySpreadConstraints[0].maxSkew",
        ),
        (
            {"spec__volumes": [{"persistentVolumeClaim": "data"}]},
            "spec.volumes[0].persistentVolumeClaim",
        ),
    ],
)
def test_a_malformed_constraint_is_refused_at_its_field(
    changes: dict[str, object], path: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        pod(**changes).value()
    assert refusal.value.path == path
