"""Pods and nodes as a real API server and kube-scheduler send them."""

import copy
import json
from typing import Any

import pytest

from reserver.cluster.constraints import Taint
from reserver.cluster.pod import PodName
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import ConfigMapObject, decode
from reserver.k8s.objects.pods import PodObject
from tests.unit.k8s.pods import POD, pod


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


@pytest.mark.parametrize(("seconds", "lingers"), [(None, False), (120, False), (121, True)])
def test_a_pod_that_is_deleted_lingers_if_it_has_more_than_two_minutes(
    seconds: int | None,
    lingers: bool,  # noqa: FBT001 - of the table
) -> None:
    at = {"metadata__deletionTimestamp": "2030-01-01T00:00:00Z"}
    read = pod(**at, metadata__deletionGracePeriodSeconds=seconds).value()
    assert (read.terminating, read.lingers) == (True, lingers)


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
