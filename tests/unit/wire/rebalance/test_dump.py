"""A dump of a cluster: which forms are read, what is read from them, what a broken object costs."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from reserver.cluster.constraints import NodeTerm, Taint
from reserver.cluster.labels import Requirement, Selector
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.rebalance.inventory import (
    EVICT,
    Condition,
    ContainerState,
    ListedPod,
    Owner,
    Preference,
)
from reserver.wire.k8s import objects
from reserver.wire.rebalance import dump, pods, podtemplate, reading
from reserver.wire.rebalance.dump import is_one_a_line, read_dump, read_lines

NODE = {
    "kind": "Node",
    "metadata": {"name": "a", "labels": {"zone": "1"}},
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]},
    "status": {
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "3500m", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def _pod(name: str = "p", /, **parts: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "creationTimestamp": "2030-01-31T10:00:00Z",
            **parts.get("metadata", {}),
        },
        "spec": {"nodeName": "a", "containers": [{"name": "c"}], **parts.get("spec", {})},
        "status": {"phase": "Running", **parts.get("status", {})},
    }


def _raw(*objects: Any) -> bytes:
    return json.dumps({"kind": "List", "items": objects}).encode()


def _read(document: dict[str, Any]) -> ListedPod:
    read = read_dump(_raw(document))
    assert not read.broken
    (pod,) = read.inventory.pods
    return pod


def _names(raw: bytes) -> tuple[list[str], list[str]]:
    inventory = read_dump(raw).inventory
    return list(inventory.nodes), [pod.name.name for pod in inventory.pods]


BOTH = (NODE, _pod("p"))

FORMS = {
    "a List": _raw(*BOTH),
    "a List with indentation": json.dumps({"kind": "List", "items": BOTH}, indent=4).encode(),
    "a JSON list": json.dumps(BOTH).encode(),
    "a list of each kind": b"\n".join(
        json.dumps({"kind": f"{each['kind']}List", "items": [{**each, "kind": ""}]}).encode()
        for each in BOTH
    ),
    "one object a line": b"\n".join(json.dumps(each).encode() for each in BOTH) + b"\n\n",
    "a List in YAML": b"""\
apiVersion: v1
kind: List
items:
- kind: Node
  metadata: {name: a, labels: {zone: "1"}}
- kind: Pod
  metadata:
    name: p
    namespace: shop
    creationTimestamp: 2030-01-31T10:00:00Z
  spec: {nodeName: a}
""",
    "documents in YAML": b"---\nkind: Node\nmetadata: {name: a}\n--- # next\n"
    b"kind: Pod\nmetadata: {name: p, namespace: shop}\n---\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_dump_is_read(form: str) -> None:
    assert _names(FORMS[form]) == (["a"], ["p"])


def test_a_dump_of_one_object_a_line_is_read_line_by_line() -> None:
    lines = [json.dumps(each).encode() + b"\n" for each in BOTH]
    assert is_one_a_line([b"\n", *lines])
    assert not is_one_a_line(json.dumps(NODE, indent=4).encode().splitlines(keepends=True))
    assert read_lines(iter(lines)).inventory.pods == read_dump(b"".join(lines)).inventory.pods
    assert read_lines([b"\n", b"{]\n", *lines]).broken[0].what == "line 2"


def test_a_pod_of_a_dump_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"apiVersion": "v1", **_pod(f"p{n}")}).encode() for n in range(100)]
    read_lines(lines[:1])  # What pods have in common is read with the first one.
    decoded = []

    def counting(kind: Any, raw: Any) -> Any:
        decoded.append(kind)
        return objects.decode(kind, raw)

    for module in (dump, reading, pods, podtemplate):
        monkeypatch.setattr(module, "decode", counting)
    assert len(read_lines(lines).inventory.pods) == len(decoded) == 100


def test_a_single_object_is_a_dump() -> None:
    assert _names(json.dumps(NODE, indent=2).encode()) == (["a"], [])


def test_pods_stand_in_the_order_of_their_names_whatever_the_dump_says() -> None:
    assert _names(_raw(_pod("b"), _pod("a"), _pod("c")))[1] == ["a", "b", "c"]


BROKEN = {
    "of another shape": ({"kind": "Pod", "metadata": {"name": "x", "labels": 3}}, "Pod x"),
    "a malformed amount": (_pod("x", spec={"overhead": {"cpu": "much"}}), "Pod shop/x"),
    "a malformed time": (_pod("x", metadata={"creationTimestamp": "noon"}), "Pod shop/x"),
    "no name": ({"kind": "Node", "metadata": {}}, "Node "),
    "not an object": (3, "the dump, item 2"),
    "twice": (NODE, "Node a"),
    "longer than any object": (_pod("x", metadata={"annotations": {"a": "x" * 3_000_000}}), "Pod"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_object_costs_itself_and_is_named(case: str) -> None:
    broken, what = BROKEN[case]

    read = read_dump(_raw(NODE, broken, _pod("p")))

    assert [pod.name.name for pod in read.inventory.pods] == ["p"]
    assert list(read.inventory.nodes) == ["a"]
    assert read.broken_count == len(read.broken) == 1
    assert read.broken[0].what.startswith(what)


def test_a_line_that_is_not_json_costs_itself() -> None:
    read = read_dump(b'{"kind": "Pod",\n' + json.dumps(NODE).encode() + b"\n}")

    assert list(read.inventory.nodes) == ["a"]
    assert [what for what, _ in read.broken] == ["line 1", "line 3"]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b'{"kind": "List", "items": [', "truncated"),
        (b"kind: [", "invalid YAML"),
        (b"\xff\xfe", "UTF-8"),
        (b"kind: Pod\nkind: Pod\n", "twice"),
        (b"a: &a 1\nb: *a\n", "aliases"),
    ],
)
def test_what_is_no_dump_is_refused_with_what_to_write(raw: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as refused:
        read_dump(raw)

    assert "kubectl get" in refused.value.remedy


def test_a_dump_has_a_bound_on_objects_and_on_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_OBJECTS", 2)
    monkeypatch.setattr(dump, "MOST_YAML", 10)

    assert _names(_raw(*BOTH)) == (["a"], ["p"])
    with pytest.raises(InvalidInput, match="more than 2 objects"):
        read_dump(_raw(*BOTH, _pod("q")))
    with pytest.raises(InvalidInput, match="too many"):
        read_dump(b"kind: Node\nmetadata: {name: a}\n")


def test_no_more_than_so_many_broken_objects_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NAMED", 2)

    read = read_dump(_raw(1, 2, 3))

    assert (len(read.broken), read.broken_count) == (2, 3)


def test_objects_that_nobody_asks_for_are_passed_over_and_counted() -> None:
    read = read_dump(_raw({"kind": "Deployment", "metadata": {"name": "x"}}, NODE))

    assert dict(read.passed_over) == {"Deployment": 1}


def test_a_node_has_all_taints_its_capacity_and_whether_it_is_ready() -> None:
    node = read_dump(_raw(NODE)).inventory.nodes["a"]

    assert node.taints == (Taint("k", "v", "PreferNoSchedule"),)
    assert node.node.taints == ()
    assert node.capacity == {"cpu": 4000}
    assert node.offered == {"cpu": 3500, "pods": 10}
    assert node.is_ready


@pytest.mark.parametrize(
    ("conditions", "is_ready"),
    [
        ([], True),
        ([{"type": "DiskPressure", "status": "Unknown"}], True),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "Ready", "status": "False"}], False),
    ],
)
def test_a_node_is_ready_unless_its_condition_says_otherwise(
    *, conditions: list[dict[str, str]], is_ready: bool
) -> None:
    node = {**NODE, "status": {"conditions": conditions}}

    assert read_dump(_raw(node)).inventory.nodes["a"].is_ready is is_ready


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
        {"metadata": {"annotations": {EVICT: "false", "other": "x"}}},
        {"annotations": {EVICT: "false"}},
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
                    {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                    {"state": {"terminated": {"reason": "Error", "exitCode": 2}}},
                    {"state": {"running": {"startedAt": "2030-01-31T10:00:00Z"}}},
                ],
                "initContainerStatuses": [{"restartCount": 1}],
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
        {"conditions": (Condition("Ready", "False"), Condition("X", "True", "", 9.0))},
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_a_descheduler_asks_of_a_pod_is_read(part: str) -> None:
    written, expected = PARTS[part]
    pod = _read(_pod("p", **written))

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

    assert _read(_pod(spec={"containers": [container]})).qos == qos


def test_pods_of_one_template_share_what_is_equal() -> None:
    written: dict[str, Any] = {
        "metadata": {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "1"}]},
        "spec": {"containers": [{"image": "shared", "resources": REQUESTS}]},
    }
    first, second = read_dump(_raw(_pod("a", **written), _pod("b", **written))).inventory.pods

    assert first.owners is second.owners
    assert first.images is second.images
    assert first.requests is second.requests


def test_what_protects_pods_is_read() -> None:
    read = read_dump(
        _raw(
            {"kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}},
            {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {
                    "selector": {"matchLabels": {"app": "web"}},
                    "unhealthyPodEvictionPolicy": "AlwaysAllow",
                },
                "status": {"disruptionsAllowed": 2},
            },
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data", "namespace": "shop"},
                "spec": {"storageClassName": "fast", "volumeName": "v"},
            },
            {"kind": "PersistentVolume", "metadata": {"name": "v"}},
            {"kind": "StorageClass", "metadata": {"name": "fast"}},
        )
    )
    inventory = read.inventory
    (budget,) = inventory.budgets

    assert not read.broken
    assert inventory.namespaces == {"shop": {"team": "a"}}
    assert inventory.priority_classes == {"high": 1000}
    assert (budget.allowed, budget.spares_unhealthy) == (2, True)
    assert budget.selector.matches({"app": "web"})
    assert inventory.claim_classes == {PodName("shop", "data"): "fast"}
    assert set(inventory.storage.volumes) == {"v"}
    assert set(inventory.storage.classes) == {"fast"}


def test_metrics_count_as_load() -> None:
    inventory = read_dump(
        _raw(
            {"kind": "NodeMetrics", "metadata": {"name": "a"}, "usage": {"cpu": "1500m"}},
            {
                "kind": "PodMetrics",
                "metadata": {"name": "p", "namespace": "shop"},
                "containers": [{"usage": {"cpu": "1", "memory": "1Ki"}}, {"usage": {"cpu": "2"}}],
            },
        )
    ).inventory

    assert inventory.node_usage == {"a": {"cpu": 1500}}
    assert inventory.pod_usage == {
        PodName("shop", "p"): ({"cpu": 1000, "memory": 1024}, {"cpu": 2000})
    }


def test_pods_are_found_by_their_nodes_and_pending_ones_by_none() -> None:
    inventory = read_dump(_raw(_pod("b"), _pod("a"), _pod("c", spec={"nodeName": ""}))).inventory

    assert {node: [pod.name.name for pod in pods] for node, pods in inventory.by_node.items()} == {
        "a": ["a", "b"]
    }
