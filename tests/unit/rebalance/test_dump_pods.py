"""The pods of a dump."""

from typing import Any

import pytest
from msgspec.structs import replace

from reserver.cluster.constraints import NodeTerm
from reserver.cluster.labels import Requirement, Selector
from reserver.k8s.objects.pod_annotations import COST_ANNOTATION
from reserver.rebalance.cluster_state import (
    EVICT,
    ContainerState,
    ListedCondition,
    ListedPod,
    Owner,
    Preference,
)
from reserver.rebalance.dump import read_dump
from tests.unit.rebalance.dumped import listing, written_pod


def _read(document: dict[str, Any]) -> ListedPod:
    read = read_dump(listing(document))
    assert not read.broken
    (pod,) = read.inventory.pods
    return pod


REQUESTS = {"requests": {"cpu": "100m", "memory": "0"}}

PARTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "what is absent": (
        {},
        {"created": 1896084000.0, "started": None, "priority": None, "phase": "Running"},
    ),
    "no creation": ({"metadata": {"creationTimestamp": None}}, {"created": 0.0}),
    "start and reason": (
        {"status": {"startTime": "1970-01-01T00:01:00Z", "reason": "Evicted"}},
        {"started": 60.0, "reason": "Evicted"},
    ),
    "priority": ({"spec": {"priority": 0}}, {"priority": 0}),
    "owners": (
        {"metadata": {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "1"}]}},
        {"owners": (Owner("Job", "j", "1"),)},
    ),
    "annotations": (
        {"metadata": {"annotations": {EVICT: "false", COST_ANNOTATION: "-5", "other": "x"}}},
        {"annotations": {EVICT: "false", COST_ANNOTATION: "-5"}},
    ),
    "images": (
        {
            "spec": {
                "containers": [{"image": "b"}, {"image": "a"}],
                "initContainers": [{"image": "c"}],
            }
        },
        {"images": ("a", "b")},
    ),
    "requests with zeros": (
        {"spec": {"containers": [{"resources": REQUESTS}]}},
        {
            "requests": {"cpu": 100, "memory": 0, "pods": 1},
            "named": frozenset({"cpu", "memory"}),
            "qos": "Burstable",
        },
    ),
    "the spec's requests during a resize": (
        {
            "spec": {"containers": [{"name": "c", "resources": REQUESTS}]},
            "status": {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]},
        },
        {"requests": {"cpu": 100, "memory": 0, "pods": 1}},
    ),
    "an overhead": (
        {"spec": {"overhead": {"memory": "1Ki"}}},
        {"requests": {"memory": 1024, "pods": 1}, "named": frozenset()},
    ),
    "its own QoS class": ({"status": {"qosClass": "Guaranteed"}}, {"qos": "Guaranteed"}),
    "a preferred node affinity": (
        {
            "spec": {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 5,
                                "preference": {
                                    "matchExpressions": [{"key": "k", "operator": "Exists"}]
                                },
                            },
                            {"weight": 7, "preference": {}},
                        ]
                    }
                }
            }
        },
        {
            "preferences": (Preference(5, NodeTerm(Selector((Requirement("k", "Exists"),)))),),
            "has_preferences": True,
            "has_node_rules": True,
        },
    ),
    "a node selector": ({"spec": {"nodeSelector": {"a": "b"}}}, {"has_node_rules": True}),
    "claims": (
        {
            "spec": {
                "volumes": [
                    {"persistentVolumeClaim": {"claimName": "c"}},
                    {"ephemeral": {}},
                    {"configMap": {"name": "m"}},
                ]
            }
        },
        {"claims": ("c",), "has_local_storage": False},
    ),
    "an empty directory": (
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"has_local_storage": True},
    ),
    "a directory of the host": (
        {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}},
        {"has_local_storage": True},
    ),
    "resource claims": (
        {"spec": {"resourceClaims": [{"name": "gpu"}]}},
        {"has_resource_claims": True},
    ),
    "no resource claims": ({"spec": {"resourceClaims": []}}, {"has_resource_claims": False}),
    "states of containers": (
        {
            "status": {
                "containerStatuses": [
                    {
                        "name": "a",
                        "restartCount": 3,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    },
                    {"name": "b", "state": {"terminated": {"reason": "Error", "exitCode": 2}}},
                    {"name": "c", "state": {"running": {"startedAt": "2030-01-31T10:00:00Z"}}},
                ],
                "initContainerStatuses": [{"name": "d", "restartCount": 1}],
            }
        },
        {
            "containers": (
                ContainerState(3, waiting="CrashLoopBackOff"),
                ContainerState(0, terminated="Error", exit_code=2),
                ContainerState(),
            ),
            "init_containers": (ContainerState(1),),
            "ephemeral_containers": (),
        },
    ),
    "conditions": (
        {
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "False", "lastTransitionTime": None},
                    {"type": "X", "status": "True", "lastTransitionTime": "1970-01-01T00:00:09Z"},
                ]
            }
        },
        {"conditions": (ListedCondition("Ready", "False"), ListedCondition("X", "True", "", 9.0))},
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_a_descheduler_asks_of_a_pod_is_read(part: str) -> None:
    written, expected = PARTS[part]
    pod = _read(written_pod("p", **written))

    assert replace(pod, **expected) == pod


@pytest.mark.parametrize(
    ("requests", "limits", "qos"),
    [
        ({}, {}, "BestEffort"),
        ({"cpu": "0"}, {}, "BestEffort"),
        ({"ephemeral-storage": "1Gi"}, {}, "BestEffort"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
        ({"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}, "Burstable"),
    ],
)
def test_the_qos_class_is_computed_where_the_status_has_none(
    requests: dict[str, str], limits: dict[str, str], qos: str
) -> None:
    container = {"resources": {"requests": requests, "limits": limits}}

    assert _read(written_pod(spec={"containers": [container]})).qos == qos


def test_pods_of_one_template_share_what_is_equal() -> None:
    written: dict[str, Any] = {
        "metadata": {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "1"}]},
        "spec": {"containers": [{"image": "shared", "resources": REQUESTS}]},
    }
    first, second = read_dump(
        listing(written_pod("a", **written), written_pod("b", **written))
    ).inventory.pods

    assert first.owners is second.owners
    assert first.images is second.images
    assert first.requests is second.requests
