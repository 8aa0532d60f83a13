"""An invalid field of a spec or an item is refused with its path."""

import json

import pytest

from tests.unit.stores.written import (
    LONG,
    SHORT,
    SPEC,
    item,
    items,
    one,
    presentable,
    read,
    refusal,
    spec,
)

WRONG = {
    "text": "nonsense",
    "number": 7,
    "fraction": 1.5,
    "truth": True,
    "nothing": None,
    "list": ["x"],
    "object": {"x": "y"},
}
WRONG_TYPES: dict[str, set[str]] = {
    "owners": {"text", "number", "fraction", "truth", "nothing", "list", "object"},
    "resources": {"text", "number", "fraction", "truth", "nothing", "list", "object"},
    "node": {"number", "fraction", "truth", "nothing", "list", "object"},
    "slots": {"text", "fraction", "truth", "nothing", "list", "object"},
    "startsAt": {"text", "number", "fraction", "truth", "list", "object"},
    "expiresAt": {"text", "number", "fraction", "truth", "list", "object"},
    "ttl": {"fraction", "truth", "list", "object"},
    "policy": {"text", "number", "fraction", "truth", "nothing", "list", "object"},
    "preemptible": {"text", "number", "fraction", "nothing", "list", "object"},
    "priority": {"text", "fraction", "truth", "list", "object"},
    "reusable": {"text", "number", "fraction", "nothing", "list", "object"},
    "placement": {"text", "number", "fraction", "truth", "list", "object"},
    "refill": {"text", "number", "fraction", "nothing", "list", "object"},
    "refillUpTo": {"text", "fraction", "truth", "list", "object"},
    "releaseIfIdle": {"text", "number", "fraction", "truth", "list", "object"},
    "lend": {"text", "number", "fraction", "truth", "list", "object"},
    "nodes": {"text", "number", "fraction", "truth", "list", "object"},
}


@pytest.mark.parametrize(
    ("field", "kind"),
    [(field, kind) for field, kinds in WRONG_TYPES.items() for kind in sorted(kinds)],
)
def test_a_spec_with_a_value_of_the_wrong_type_is_refused(field: str, kind: str) -> None:
    error = refusal(json.dumps(SPEC | {field: WRONG[kind]}))
    assert field in error.path or field in error.problem


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({"owners": None}, "", id="no owners"),
        pytest.param({"owners": []}, "owners", id="empty owners"),
        pytest.param({"owners": [{}]}, "owners[0]", id="an owner that is nobody"),
        pytest.param({"owners": [{"pod": {}}]}, "owners[0].pod", id="an owner without a name"),
        pytest.param({"owners": [{"pod": {"name": ""}}]}, "owners[0].pod.name", id="empty name"),
        pytest.param({"owners": [{"pod": {"name": "Web"}}]}, "owners[0].pod.name", id="upper case"),
        pytest.param(
            {"owners": [{"pod": {"name": "web"}}, {"pod": {"name": "a", "namespace": "a.b"}}]},
            "owners[1].pod.namespace",
            id="a namespace with a dot",
        ),
        pytest.param(
            {"owners": [{"pod": {"name": "web", "uid": "x"}}]}, "owners[0].pod", id="unknown field"
        ),
        pytest.param(
            {"owners": [{"controller": {"name": "web"}}]}, "owners[0].controller", id="controller"
        ),
        pytest.param({"owners": [{"selector": {}}]}, "owners[0].selector", id="selector"),
        pytest.param({"node": "Worker"}, "node", id="no valid node"),
        pytest.param({"node": "a" * 254}, "node", id="a long node"),
        pytest.param({"placement": {}}, "placement", id="placement"),
        pytest.param({"resources": None}, "resources", id="no resources"),
        pytest.param({"resources": {}}, "resources", id="empty resources"),
        pytest.param({"resources": {"cpu": "0"}}, "resources", id="nothing held"),
        pytest.param({"resources": {"cpu": "-1"}}, "resources.cpu", id="less than nothing"),
        pytest.param({"resources": {"cpu": -1}}, "resources.cpu", id="a negative number"),
        pytest.param({"resources": {"cpu": ""}}, "resources.cpu", id="an empty quantity"),
        pytest.param({"resources": {"cpu": "two"}}, "resources.cpu", id="a word"),
        pytest.param({"resources": {"memory": "1e17"}}, "resources.memory", id="more than 2^53"),
        pytest.param({"resources": {"memory": "9Ei"}}, "resources.memory", id="absurd"),
        pytest.param({"resources": {"memory": 1e300}}, "resources.memory", id="absurd number"),
        pytest.param(
            {"resources": {"memory": "8Pi"}, "slots": 2}, "resources.memory", id="too many slots"
        ),
        pytest.param(
            {"resources": {"cpu": "90071992548m"}, "slots": 100_000},
            "resources.cpu",
            id="millicores of all slots",
        ),
        pytest.param(
            {"resources": {"cpu": "1", "example.com/x": 2**53, "pods": 1}, "slots": 2},
            "resources.example.com/x",
            id="devices of all slots",
        ),
        pytest.param({"resources": {"memory": "4"}}, "resources.memory", id="bytes for GiB"),
        pytest.param({"resources": {"cpu": 1, "memory": "500m"}}, "resources.memory", id="500m"),
        pytest.param({"resources": {"gpu": "1"}}, "resources.gpu", id="no such resource"),
        pytest.param(
            {"resources": {"requests.x.io/gpu": 1}},
            "resources.requests.x.io/gpu",
            id="a name in a ResourceQuota",
        ),
        pytest.param(
            {"resources": {f"x.{'y' * 63}.{'y' * 63}.{'y' * 63}.{'y' * 53}/z": 1}},
            f"resources.x.{'y' * 57}…",
            id="a name that no ResourceQuota has room for",
        ),
        pytest.param({"resources": {"storage": "1"}}, "resources.storage", id="not a node's"),
        pytest.param({"resources": {"nvidia.com/": "1"}}, "resources.nvidia.com/", id="no name"),
        pytest.param({"resources": {"/gpu": "1"}}, "resources./gpu", id="no domain"),
        pytest.param({"resources": {"a/b/c": "1"}}, "resources.a/b/c", id="two slashes"),
        pytest.param({"slots": 0}, "slots", id="no slots"),
        pytest.param({"slots": -1}, "slots", id="negative slots"),
        pytest.param({"slots": 100_001}, "slots", id="absurd slots"),
        pytest.param({"refill": True}, "refill", id="no room for a refill"),
        pytest.param({"refillUpTo": 3}, "refillUpTo", id="a limit of no refill"),
        pytest.param(
            {"node": "", "refill": True, "slots": 3, "refillUpTo": 2}, "refillUpTo", id="too few"
        ),
        pytest.param(
            {"node": "", "refill": True, "refillUpTo": 100_001}, "refillUpTo", id="too many"
        ),
        pytest.param({"releaseIfIdle": "59s"}, "releaseIfIdle", id="too short to claim it"),
        pytest.param({"releaseIfIdle": "8761h"}, "releaseIfIdle", id="more than a year"),
        pytest.param({"releaseIfIdle": "7d"}, "releaseIfIdle", id="days"),
        pytest.param({"releaseIfIdle": "0"}, "releaseIfIdle", id="no time at all"),
        pytest.param({"policy": "prefer"}, "policy", id="no such policy"),
        pytest.param({"priority": 5}, "priority", id="a priority that means nothing"),
        pytest.param({"preemptible": True, "priority": 10**9 + 1}, "priority", id="the system's"),
        pytest.param({"preemptible": True, "priority": -(2**31) - 1}, "priority", id="too low"),
        pytest.param({"preemptible": True, "priority": 10**90}, "priority", id="no priority"),
    ],
)
def test_a_spec_that_cannot_be_enforced_is_refused_at_its_field(
    changes: dict[str, object], path: str
) -> None:
    assert refusal(spec(**changes)).path == path


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEIGHBOUR = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
WHOLE: dict[str, object] = {
    "owners": [{"selector": {"matchLabels": {"app": "web"}}}],
    "nodes": {"count": 3, "selector": {"pool": "gpu"}},
}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({"resources": {"cpu": "1"}}, "resources", id="resources"),
        pytest.param({"slots": 2}, "slots", id="slots"),
        pytest.param({"node": "w1"}, "node", id="a node"),
        pytest.param({"refill": True}, "refill", id="a refill"),
        pytest.param({"reusable": True}, "reusable", id="reusable"),
        pytest.param({"lend": {"belowPriority": 1}}, "lend", id="lent"),
        pytest.param({"preemptible": True}, "preemptible", id="preemptible"),
        pytest.param({"owners": [{"pod": {"name": "a"}}]}, "owners", id="a pod by name"),
        pytest.param({"nodes": {"count": 0}}, "nodes.count", id="none"),
        pytest.param({"nodes": {"count": 501}}, "nodes.count", id="too many"),
        pytest.param({"nodes": {}}, "nodes", id="no count"),
        pytest.param(
            {"nodes": {"count": 1, "selector": {"a b": "x"}}}, "nodes.selector.a b", id="no label"
        ),
        pytest.param(
            {"placement": {"nodeSelector": {"a": "b"}}},
            "placement.nodeSelector",
            id="two selectors",
        ),
        pytest.param({"placement": {"strategy": "spread"}}, "placement.strategy", id="a strategy"),
        pytest.param(
            {"placement": {"tolerations": [{}]}}, "placement.tolerations[0].key", id="all"
        ),
        pytest.param(
            {"placement": {"affinity": {"podAntiAffinity": {REQUIRED: [NEIGHBOUR]}}}},
            "placement.affinity",
            id="neighbours",
        ),
    ],
)
def test_whole_nodes_beside_what_means_nothing_for_them_are_refused(
    changes: dict[str, object], path: str
) -> None:
    error = refusal(json.dumps(WHOLE | changes))
    assert (error.path, bool(error.remedy)) == (path, True)


@pytest.mark.parametrize(
    "key", ["Web", "web_0", "-web", "web-", "web..0", ".web", "a" * 254, "WORKER_1"]
)
@pytest.mark.parametrize("text", [spec(), items(SHORT)], ids=["spec", "list"])
def test_a_key_that_is_no_valid_name_is_refused(key: str, text: str) -> None:
    error = refusal(text, key)
    assert "lower case" in error.remedy


def test_a_refused_spec_says_which_fields_there_are() -> None:
    remedy = refusal(spec(cpu="2")).remedy
    for field in ("owners", "resources", "slots", "node", "startsAt", "expiresAt", "ttl", "policy"):
        assert field in remedy


# Errors in an item of a list; all other items are kept.

ITEM_WRONG: dict[str, set[str]] = {
    "pod": {"number", "fraction", "truth", "nothing", "list", "object"},
    "namespace": {"number", "fraction", "truth", "nothing", "list", "object"},
    "cpu": {"text", "fraction", "truth", "nothing", "list", "object"},
    "mem": {"text", "fraction", "truth", "nothing", "list", "object"},
    "expire": {"text", "fraction", "truth", "nothing", "list", "object"},
}
NAMES = {
    "pod": "reservingPod",
    "namespace": "reservingPodNamespace",
    "cpu": "cpuMilli",
    "mem": "memMilli",
    "expire": "expireAt",
}


@pytest.mark.parametrize(
    ("field", "kind"),
    [(field, kind) for field, kinds in ITEM_WRONG.items() for kind in sorted(kinds)],
)
def test_an_item_with_a_value_of_the_wrong_type_is_refused_alone(field: str, kind: str) -> None:
    for form, name in ((SHORT, field), (LONG, NAMES[field])):
        if form is LONG and (field, kind) == ("pod", "nothing"):
            continue  # Without that name it is the short form.
        written = [item(pod="before"), form | {name: WRONG[kind]}, item(pod="after")]
        entries = read(items(*written), "worker-1")
        assert [r.ref.item for r in entries.reservations] == ["shop/before", "shop/after"]
        (problem,) = entries.problems
        assert presentable(problem).path == f"[1].{name}"


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        pytest.param(None, "[1]", id="nothing"),
        pytest.param("web-0", "[1]", id="a word"),
        pytest.param([SHORT], "[1]", id="a list"),
        pytest.param({}, "[1].pod", id="empty"),
        pytest.param(item(pod=None), "[1].pod", id="no pod"),
        pytest.param(item(pod=""), "[1].pod", id="an empty name"),
        pytest.param(item(pod="Web"), "[1].pod", id="upper case"),
        pytest.param(item(namespace=None), "[1].namespace", id="no namespace"),
        pytest.param(item(namespace="a.b"), "[1].namespace", id="a namespace with a dot"),
        pytest.param(item(cpu=None), "[1].cpu", id="no cpu"),
        pytest.param(item(cpu=-1), "[1].cpu", id="negative cpu"),
        pytest.param(item(cpu="2000m"), "[1].cpu", id="a quantity"),
        pytest.param(item(mem=-1), "[1].mem", id="negative memory"),
        pytest.param(item(mem=2**53 + 1), "[1].mem", id="more than any node has"),
        pytest.param(item(mem=10**400), "[1]", id="absurd memory"),
        pytest.param(item(cpu=0, mem=0), "[1].cpu", id="nothing held"),
        pytest.param(item(expire=None), "[1].expire", id="no expiry"),
        pytest.param(item(pod="before"), "[1]", id="the same pod twice"),
    ],
)
def test_a_broken_item_is_refused_alone_at_its_field(broken: object, path: str) -> None:
    entries = read(items(item(pod="before"), broken, item(pod="after")), "worker-1")
    assert [r.ref.item for r in entries.reservations] == ["shop/before", "shop/after"]
    (problem,) = entries.problems
    assert presentable(problem).path == path


def test_an_item_with_a_name_that_stands_twice_is_refused_alone() -> None:
    twice = '{"pod": "a", "pod": "b", "namespace": "shop", "cpu": 1, "mem": 1, "expire": 1}'
    text = f"[{json.dumps(item(pod='before'))}, {twice}, {json.dumps(item(pod='after'))}]"
    entries = read(text, "worker-1")
    assert [r.ref.item for r in entries.reservations] == ["shop/before", "shop/after"]
    assert len(entries.problems) == 1


def test_one_of_cpu_and_memory_is_enough_to_hold() -> None:
    assert one(items(item(cpu=0)), "worker-1").resources == {"memory": 4 * 2**30, "pods": 1}
    assert one(items(item(mem=0)), "worker-1").resources == {"cpu": 2000, "pods": 1}
