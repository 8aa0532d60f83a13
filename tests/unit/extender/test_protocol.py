"""The protocol of staging/src/k8s.io/kube-scheduler/extender/v1: keys are Go names."""

import json

import pytest

from reserver.errors import InvalidInput
from reserver.extender.protocol import (
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    decode_bind,
    decode_filter,
    decode_preempt,
)
from reserver.k8s.objects.objects import encode

POD = {"metadata": {"name": "web-0", "namespace": "shop", "uid": "u-1"}, "spec": {}, "status": {}}
FILTER = {"Pod": POD, "Nodes": None, "NodeNames": ["worker-1", "worker-2"]}
BIND = {"PodName": "web-0", "PodNamespace": "shop", "PodUID": "u-1", "Node": "worker-1"}


def test_a_filter_call_is_read() -> None:
    pod, names = decode_filter(json.dumps(FILTER).encode())
    assert (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) == ("shop", "web-0", "u-1")
    assert names == ["worker-1", "worker-2"]


def test_a_bind_call_is_read() -> None:
    args = decode_bind(json.dumps(BIND).encode())
    assert (args.pod_namespace, args.pod_name) == ("shop", "web-0")
    assert (args.pod_uid, args.node) == ("u-1", "worker-1")


def test_answers_are_written_with_the_names_that_go_has_for_them() -> None:
    refused = ExtenderFilterResult(failed_and_unresolvable_nodes={"worker-1": "held"})
    assert encode(ExtenderFilterResult(node_names=["worker-1"])) == (
        b'{"NodeNames":["worker-1"],"FailedAndUnresolvableNodes":{},"Error":""}'
    )
    assert encode(refused) == (
        b'{"NodeNames":[],"FailedAndUnresolvableNodes":{"worker-1":"held"},"Error":""}'
    )
    assert encode(ExtenderFilterResult(error="not ready")) == (
        b'{"NodeNames":[],"FailedAndUnresolvableNodes":{},"Error":"not ready"}'
    )
    assert encode(ExtenderBindingResult()) == b'{"Error":""}'
    assert encode(ExtenderBindingResult("held")) == b'{"Error":"held"}'


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({"Pod": None}, "Pod", id="no pod"),
        pytest.param({"Pod": 7}, "Pod", id="a pod that is a number"),
        pytest.param({"Pod": {}}, "Pod.metadata", id="a pod without a name"),
        pytest.param({"Pod": {"metadata": {"name": "a"}}}, "Pod.metadata", id="no namespace"),
        pytest.param({"Pod": POD | {"spec": None}}, "Pod.spec", id="no spec"),
        pytest.param({"NodeNames": None}, "NodeNames", id="no names"),
        pytest.param({"NodeNames": None, "Nodes": {"items": []}}, "NodeNames", id="whole nodes"),
        pytest.param({"NodeNames": "worker-1"}, "NodeNames", id="one name"),
        pytest.param({"NodeNames": [7]}, "NodeNames[0]", id="a number for a name"),
    ],
)
def test_a_filter_call_that_is_malformed_is_refused_at_its_field(
    changes: dict[str, object], path: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        decode_filter(json.dumps(FILTER | changes).encode())
    assert refusal.value.path == path


def test_who_sends_whole_nodes_is_told_what_to_configure() -> None:
    with pytest.raises(InvalidInput, match="nodeCacheCapable: true"):
        decode_filter(json.dumps(FILTER | {"NodeNames": None, "Nodes": {"items": []}}).encode())


@pytest.mark.parametrize("field", BIND)
@pytest.mark.parametrize("value", ["", None, 7, ["a"], "missing"])
def test_a_bind_call_that_is_malformed_is_refused_at_its_field(field: str, value: object) -> None:
    body = {name: v for name, v in (BIND | {field: value}).items() if v != "missing"}
    with pytest.raises(InvalidInput) as refusal:
        decode_bind(json.dumps(body).encode())
    assert field in str(refusal.value)


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"7", b"{", b"\xff", b'{"Pod": "\xff"}'])
def test_what_is_no_call_at_all_is_refused(raw: bytes) -> None:
    for decode in (decode_filter, decode_bind, decode_preempt):
        with pytest.raises(InvalidInput):
            decode(raw)


META = {"worker-1": {"Pods": [{"UID": "v1"}, {"UID": "v2"}], "NumPDBViolations": 1}}
WHOLE = {"worker-1": {"Pods": [{"metadata": {"name": "v", "uid": "v1"}}], "NumPDBViolations": 1}}


@pytest.mark.parametrize(
    ("maps", "victims"),
    [
        ({"NodeNameToVictims": None, "NodeNameToMetaVictims": META}, {"worker-1": ("v1", "v2")}),
        ({"NodeNameToVictims": WHOLE, "NodeNameToMetaVictims": None}, {"worker-1": ("v1",)}),
        ({"NodeNameToVictims": WHOLE}, {"worker-1": ("v1",)}),
        ({"NodeNameToVictims": WHOLE, "NodeNameToMetaVictims": META}, {"worker-1": ("v1", "v2")}),
        ({"NodeNameToMetaVictims": {"worker-1": {"Pods": []}}}, {"worker-1": ()}),
        ({"NodeNameToMetaVictims": {"worker-1": {"Pods": None}}}, {"worker-1": ()}),
        ({"NodeNameToMetaVictims": {"worker-1": {"Pods": [None, {}]}}}, {"worker-1": ()}),
        ({"NodeNameToVictims": {"worker-1": {"Pods": [None, {}]}}}, {"worker-1": ()}),
        ({"NodeNameToMetaVictims": {"worker-1": {}, "worker-2": None}}, {"worker-1": ()}),
        ({"NodeNameToVictims": {"worker-2": None}}, {}),
        ({"NodeNameToMetaVictims": {}}, {}),
        ({}, {}),
    ],
)
def test_a_preempt_call_is_read_whatever_it_leaves_out(
    maps: dict[str, object], victims: dict[str, tuple[str, ...]]
) -> None:
    pod, read = decode_preempt(json.dumps({"Pod": POD} | maps).encode())
    assert pod.metadata.uid == "u-1"
    assert {node: read[node].uids() for node in read} == victims


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"Pod": None}, "Pod"),
        ({"Pod": {"metadata": {"name": "web-0"}}}, "Pod.metadata"),
        ({"NodeNameToMetaVictims": []}, "NodeNameToMetaVictims"),
        ({"NodeNameToMetaVictims": {"worker-1": 7}}, "NodeNameToMetaVictims[...]"),
        (
            {"NodeNameToMetaVictims": {"worker-1": {"Pods": [{"UID": 7}]}}},
            "NodeNameToMetaVictims[...].Pods[0].UID",
        ),
    ],
)
def test_a_preempt_call_that_is_malformed_is_refused_at_its_field(
    changes: dict[str, object], path: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        decode_preempt(json.dumps({"Pod": POD} | changes).encode())
    assert refusal.value.path == path


def test_a_preempt_answer_has_the_uids_and_the_broken_budgets_that_were_asked_for() -> None:
    _, victims = decode_preempt(json.dumps({"Pod": POD, "NodeNameToVictims": WHOLE}).encode())
    assert encode(ExtenderPreemptionResult(victims)) == (
        b'{"NodeNameToMetaVictims":{"worker-1":{"Pods":[{"UID":"v1"}],"NumPDBViolations":1}}}'
    )
    gaps = {"worker-1": {"Pods": [None, {"UID": "v1"}, {"UID": ""}], "NumPDBViolations": 1}}
    call = {"Pod": POD, "NodeNameToMetaVictims": gaps}
    assert decode_preempt(json.dumps(call).encode())[1] == victims
    assert encode(ExtenderPreemptionResult({})) == b'{"NodeNameToMetaVictims":{}}'
