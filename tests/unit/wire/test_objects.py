"""Pods and nodes as a real API server and kube-scheduler send them."""

import copy
import json
from typing import Any

import pytest

from reserver.cluster.constraints import TOO_MANY, Taint
from reserver.cluster.labels import UNREAD
from reserver.cluster.pod import ClaimUse, Controller, PodName
from reserver.errors import InvalidInput
from reserver.wire.k8s.nodes import NodeObject
from reserver.wire.k8s.objects import ConfigMapObject, decode
from reserver.wire.k8s.pods import PodObject

POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "web-0",
        "generateName": "web-",
        "namespace": "shop",
        "uid": "9c1f5e0a-5d0e-4a4c-8d3b-2f6a1a1b2c3d",
        "resourceVersion": "12345",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "deletionTimestamp": None,
        "labels": {"app": "web"},
        "annotations": {"kubectl.kubernetes.io/restartedAt": "x", "reserver.io/claims": '["a@1"]'},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}],
        "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {"f:labels": {}}}}],
    },
    "spec": {
        "volumes": [{"name": "token", "projected": {"sources": None, "defaultMode": 420}}],
        "initContainers": [
            {"name": "mesh", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
            {"name": "setup", "image": "x", "resources": {}},
        ],
        "containers": [
            {
                "name": "web",
                "image": "web:1",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"},
                    "requests": {"cpu": "250m", "memory": "512Mi", "nvidia.com/gpu": "1"},
                },
                "terminationMessagePolicy": "File",
            },
            {"name": "log", "resources": None},
        ],
        "overhead": {"cpu": "10m"},
        "nodeName": "worker-1",
        "priority": 1000,
        "tolerations": [{"key": "x", "operator": "Exists", "tolerationSeconds": 300}],
        "affinity": None,
        "topologySpreadConstraints": None,
        "ephemeralContainers": None,
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastProbeTime": None, "reason": "AllGood"}
        ],
        "containerStatuses": [
            {
                "name": "web",
                "allocatedResources": {"cpu": "300m", "memory": "512Mi", "nvidia.com/gpu": "1"},
                "resources": {
                    "requests": {"cpu": "250m", "memory": "512Mi", "nvidia.com/gpu": "1"}
                },
                "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
            }
        ],
        "initContainerStatuses": None,
        "qosClass": "Burstable",
    },
}


def pod(**changes: Any) -> PodObject:
    """Decode the pod above, changed at ``a__b`` for ``{"a": {"b": ...}}``."""
    return decode(PodObject, changed(POD, changes))


def changed(document: dict[str, Any], changes: dict[str, Any]) -> bytes:
    document = copy.deepcopy(document)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place[parent]
        place[last] = value
    return json.dumps(document).encode()


def test_a_pod_is_read() -> None:
    value = pod().value()
    assert value.name == PodName("shop", "web-0")
    assert value.uid == "9c1f5e0a-5d0e-4a4c-8d3b-2f6a1a1b2c3d"
    assert value.node == "worker-1"
    assert value.priority == 1000
    assert value.claims == {"a@1"}
    assert not value.finished
    assert not value.has_preferences
    # 300m allocated to web, 50m for the mesh sidecar, 10m overhead.
    assert value.requests == {
        "cpu": 360,
        "memory": 512 * 2**20,
        "nvidia.com/gpu": 1,
        "pods": 1,
    }


def test_a_mirror_pod_is_known_as_one() -> None:
    mirror = {"kubernetes.io/config.mirror": "9c1f5e0a", "kubernetes.io/config.source": "file"}
    assert pod(metadata__annotations=mirror).value().is_mirror
    assert pod(metadata__annotations=mirror | {"kubernetes.io/config.mirror": ""}).value().is_mirror
    assert not pod().value().is_mirror


@pytest.mark.parametrize(
    ("written", "group"),
    [
        ({"podGroupName": "training"}, "training"),
        ({"podGroupName": None}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_a_pod_says_which_pod_group_it_is_scheduled_with(written: object, group: str) -> None:
    assert pod(spec__schedulingGroup=written).value().group == group


@pytest.mark.parametrize(
    ("written", "has_some"),
    [([{"name": "gpu", "resourceClaimName": "a"}], True), ([], False), (None, False)],
)
def test_a_pod_says_whether_it_has_resource_claims(written: object, *, has_some: bool) -> None:
    assert pod(spec__resourceClaims=written).value().has_resource_claims is has_some


def test_what_claims_take_of_a_node_is_part_of_the_request() -> None:
    claim = {
        "resourceClaimName": "a",
        "containers": ["web", "mesh"],
        "mapping": [{"name": "cpu", "quantity": "2"}, {"name": "memory", "quantity": None}],
        "overhead": [
            {"name": "cpu", "perPod": "100m", "perContainer": "10m"},
            {"name": "memory", "perContainer": "1Mi"},
        ],
    }
    alone = claim | {"containers": None, "mapping": None}
    before = pod().value().requests
    requests = pod(status__nodeAllocatableResourceClaimStatuses=[claim, alone]).value().requests
    assert requests["cpu"] == before["cpu"] + 2000 + 120 + 100
    assert requests["memory"] == before["memory"] + 2 * 2**20


def test_a_malformed_amount_of_a_claim_is_refused_at_its_field() -> None:
    broken = [{"mapping": [{"name": "cpu", "quantity": "much"}]}]
    with pytest.raises(InvalidInput, match=r"status\.nodeAllocatableResourceClaimStatuses\.cpu"):
        pod(status__nodeAllocatableResourceClaimStatuses=broken).value()


@pytest.mark.parametrize(
    ("message", "node", "is_refused"),
    [
        (
            "0/4 nodes are available: 1 held by reservation team-a/gpu, 3 Insufficient cpu.",
            "",
            True,
        ),
        ("0/3 nodes are available: 3 waiting for its seat in reservation a/b.", "", True),
        ("0/200 nodes are available: 200 capacity held by reservations.", "", True),
        ("0/4 nodes are available: 4 Insufficient cpu.", "", False),
        ("0/4 nodes are available: 1 held by reservation team-a/gpu.", "worker-1", False),
    ],
)
def test_a_pending_pod_says_that_a_reservation_keeps_it_from_nodes(
    message: str, node: str, *, is_refused: bool
) -> None:
    refusal = {"type": "PodScheduled", "status": "False", "message": message}
    value = pod(spec__nodeName=node, status__conditions=[refusal]).value()
    assert value.is_refused is is_refused


def test_a_pod_as_little_as_it_may_be_is_read() -> None:
    value = decode(PodObject, b'{"metadata":{"name":"a","namespace":"b"}}').value()
    assert value.name == PodName("b", "a")
    assert value.requests == {"pods": 1}
    assert (value.node, value.priority, value.nominated_node) == ("", 0, "")


@pytest.mark.parametrize(
    "path",
    [
        "metadata__annotations",
        "spec__priority",
        "spec__initContainers",
        "spec__containers",
        "spec__overhead",
        "spec__affinity",
        "spec__topologySpreadConstraints",
        "spec__resources",
        "metadata__labels",
        "metadata__ownerReferences",
        "metadata__deletionTimestamp",
        "spec__nodeSelector",
        "spec__tolerations",
        "spec__volumes",
        "status__conditions",
        "status__containerStatuses",
        "status__initContainerStatuses",
        "status__allocatedResources",
        "status__resources",
    ],
)
def test_what_go_writes_as_null_is_read_as_absent(path: str) -> None:
    section, field = path.split("__")
    without = copy.deepcopy(POD)
    without[section].pop(field, None)
    assert pod(**{path: None}).value() == decode(PodObject, json.dumps(without).encode()).value()


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True), ("", False)],
)
def test_a_pod_that_succeeded_or_failed_is_finished(phase: str, *, finished: bool) -> None:
    assert pod(status__phase=phase).value().finished == finished


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("[]", set()),
        ('["a@1","b@2"]', {"a@1", "b@2"}),
        ("", set()),
        ("a@1", set()),
        ('{"a": 1}', set()),
        ("[1]", set()),
        ("[[", set()),
        ("[" * 100_000, set()),
    ],
)
def test_claims_that_reserver_did_not_write_are_none(text: str, claims: set[str]) -> None:
    assert pod(metadata__annotations={"reserver.io/claims": text}).value().claims == claims


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


@pytest.mark.parametrize(
    ("conditions", "millicores"),
    [
        ([], 2060),
        ([{"type": "PodResizePending", "status": "True", "reason": "Deferred"}], 2060),
        ([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}], 310),
        ([{"type": "PodResizeInProgress", "status": "True", "reason": "Infeasible"}], 2060),
    ],
)
def test_a_resize_that_is_infeasible_does_not_count(
    conditions: list[object], millicores: int
) -> None:
    containers = copy.deepcopy(POD["spec"]["containers"])
    containers[0]["resources"]["requests"]["cpu"] = "2"
    value = pod(spec__containers=containers, status__conditions=conditions).value()
    # The sidecar has no status, so that its spec is all there is, unless the resize is infeasible.
    assert value.requests["cpu"] == millicores


@pytest.mark.parametrize(
    "in_force",
    [
        pytest.param({}, id="which is empty"),
        pytest.param({"limits": {"cpu": "9"}}, id="which tells limits only"),
    ],
)
def test_pod_level_requests_count_with_what_is_allocated_once_there_is_a_resource_status(
    in_force: object,
) -> None:
    value = pod(
        spec__resources={"requests": {"cpu": "2"}},
        status__allocatedResources={"cpu": "3"},
        status__resources=in_force,
    ).value()
    assert value.requests["cpu"] == 3010


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        (
            {"spec__containers": [{"resources": {"requests": {"cpu": "x"}}}]},
            "spec.containers[0].resources.requests.cpu",
        ),
        (
            {"spec__initContainers": [{}, {"resources": {"requests": {"cpu": ""}}}]},
            "spec.initContainers[1].resources.requests.cpu",
        ),
        ({"spec__overhead": {"memory": "1 Gi"}}, "spec.overhead.memory"),
        ({"spec__resources": {"requests": {"cpu": "x"}}}, "spec.resources.requests.cpu"),
        ({"status__allocatedResources": {"cpu": "x"}}, "status.allocatedResources.cpu"),
        ({"status__resources": {"requests": {"cpu": "x"}}}, "status.resources.requests.cpu"),
    ],
)
def test_a_malformed_quantity_is_refused_at_its_field(
    changes: dict[str, object], path: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        pod(**changes).value()
    assert refusal.value.path == path


def test_a_field_of_the_wrong_type_is_refused_at_its_path() -> None:
    with pytest.raises(InvalidInput) as refusal:
        pod(spec__nodeName=7)
    assert refusal.value.path == "spec.nodeName"


def test_what_a_pod_says_of_itself_beside_resources_is_read() -> None:
    value = pod().value()
    assert value.labels == {"app": "web"}
    assert value.controller == ("", "")  # Its owner does not say that it is the controller.
    assert not value.terminating
    assert value.volume_claims == ()
    assert [toleration.key for toleration in value.constraints.tolerations] == ["x"]
    owners = [{"kind": "Node", "name": "n"}, {"kind": "Job", "name": "j", "controller": True}]
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
    labels = {f"key-{number}": "x" * 63 for number in range(5000)}
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


NODE: dict[str, Any] = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "worker-1", "labels": {"zone": "a"}, "annotations": None},
    "spec": {"podCIDR": "10.0.0.0/24", "taints": None, "unschedulable": True},
    "status": {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "allocatable": {
            "cpu": "3920m",
            "memory": "15Gi",
            "pods": "110",
            "ephemeral-storage": "94477937300",
            "hugepages-2Mi": "0",
            "nvidia.com/gpu": 2,
        },
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": None,
    },
}


def test_a_node_is_read() -> None:
    value = decode(NodeObject, json.dumps(NODE).encode()).value()
    assert value.name == "worker-1"
    assert value.labels == {"zone": "a"}
    assert value.unschedulable
    assert value.taints == ()
    assert value.allocatable == {
        "cpu": 3920,
        "memory": 15 * 2**30,
        "pods": 110,
        "ephemeral-storage": 94477937300,
        "hugepages-2Mi": 0,
        "nvidia.com/gpu": 2,
    }


def test_a_taint_that_keeps_nobody_away_is_passed_over() -> None:
    taints = [{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "NoExecute"}]
    value = decode(NodeObject, json.dumps(NODE | {"spec": {"taints": taints}}).encode()).value()
    assert value.taints == (Taint("b", "", "NoExecute"),)


@pytest.mark.parametrize("status", [{}, {"allocatable": None}])
def test_a_node_that_has_not_registered_its_resources_offers_nothing(status: object) -> None:
    raw = json.dumps(NODE | {"status": status}).encode()
    assert decode(NodeObject, raw).value().allocatable == {}


@pytest.mark.parametrize("data", [None, {}, {"a": "b"}])
def test_a_configmap_is_read(data: object) -> None:
    raw = json.dumps({"metadata": {"name": "store", "namespace": "shop"}, "data": data})
    assert decode(ConfigMapObject, raw.encode()).data == data
