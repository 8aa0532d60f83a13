"""A dump of a cluster: its forms, the objects in it, and the cost of a broken object."""

import json
from typing import Any

import pytest

from reserver.cluster.constraints import Taint
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects import objects
from reserver.rebalance import dump
from reserver.rebalance import dump_pods as pods
from reserver.rebalance import dump_reader as reading
from reserver.rebalance import pod_template as podtemplate
from reserver.rebalance.dump import is_one_a_line, read_dump, read_lines
from tests.unit.rebalance.dumped import listing, written_pod

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


def _names(raw: bytes) -> tuple[list[str], list[str]]:
    inventory = read_dump(raw).inventory
    return list(inventory.nodes), [pod.name.name for pod in inventory.pods]


BOTH = (NODE, written_pod("p"))

FORMS = {
    "a List": listing(*BOTH),
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
    lines = [json.dumps({"apiVersion": "v1", **written_pod(f"p{n}")}).encode() for n in range(100)]
    read_lines(lines[:1])  # Shared parts are read with the first pod.
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
    assert _names(listing(written_pod("b"), written_pod("a"), written_pod("c")))[1] == [
        "a",
        "b",
        "c",
    ]


BROKEN = {
    "of another shape": ({"kind": "Pod", "metadata": {"name": "x", "labels": 3}}, "Pod x"),
    "a malformed amount": (written_pod("x", spec={"overhead": {"cpu": "much"}}), "Pod shop/x"),
    "a malformed time": (written_pod("x", metadata={"creationTimestamp": "noon"}), "Pod shop/x"),
    "no name": ({"kind": "Node", "metadata": {}}, "Node "),
    "not an object": (3, "the dump, item 2"),
    "twice": (NODE, "Node a"),
    "longer than any object": (
        written_pod("x", metadata={"annotations": {"a": "x" * 3_000_000}}),
        "Pod",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_object_costs_itself_and_is_named(case: str) -> None:
    broken, what = BROKEN[case]

    read = read_dump(listing(NODE, broken, written_pod("p")))

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

    assert _names(listing(*BOTH)) == (["a"], ["p"])
    with pytest.raises(InvalidInput, match="more than 2 objects"):
        read_dump(listing(*BOTH, written_pod("q")))
    with pytest.raises(InvalidInput, match="too many"):
        read_dump(b"kind: Node\nmetadata: {name: a}\n")


def test_no_more_than_so_many_broken_objects_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NAMED", 2)

    read = read_dump(listing(1, 2, 3))

    assert (len(read.broken), read.broken_count) == (2, 3)


def test_objects_that_nobody_asks_for_are_passed_over_and_counted() -> None:
    read = read_dump(listing({"kind": "Deployment", "metadata": {"name": "x"}}, NODE))

    assert dict(read.passed_over) == {"Deployment": 1}


def test_a_node_has_all_taints_its_capacity_and_whether_it_is_ready() -> None:
    node = read_dump(listing(NODE)).inventory.nodes["a"]

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

    assert read_dump(listing(node)).inventory.nodes["a"].is_ready is is_ready


def test_what_protects_pods_is_read() -> None:
    read = read_dump(
        listing(
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


@pytest.mark.parametrize("size", [17, 3_000])
def test_a_budget_that_is_too_large_protects_its_namespace(size: int) -> None:
    terms = [{"key": f"a{number}", "operator": "Exists"} for number in range(size)]
    read = read_dump(
        listing(
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "huge", "namespace": "shop"},
                "spec": {"selector": {"matchExpressions": terms}},
                "status": {"disruptionsAllowed": 2},
            }
        )
    )
    (budget,) = read.inventory.budgets
    assert not read.broken
    assert (budget.name, budget.allowed) == (PodName("shop", "huge"), 0)
    assert budget.selector.matches({})


def test_metrics_count_as_load() -> None:
    inventory = read_dump(
        listing(
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
    inventory = read_dump(
        listing(written_pod("b"), written_pod("a"), written_pod("c", spec={"nodeName": ""}))
    ).inventory

    assert {node: [pod.name.name for pod in pods] for node, pods in inventory.by_node.items()} == {
        "a": ["a", "b"]
    }
