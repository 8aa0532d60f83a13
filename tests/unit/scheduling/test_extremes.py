"""The strangest numbers that pods and nodes may have: they are refused, or decided on in peace."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.errors import InvalidInput
from reserver.extender.protocol import decode_preempt
from reserver.k8s.lease import LeaseObject
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pods import PodObject
from reserver.process import hold_metrics
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.node_explanation import explain_nodes
from reserver.scheduling.preempt import judge_preemption
from tests.builders import NOW, name, node, pod, reservation, state_of, wake

Written = dict[str, Any]

NUMBERS: list[Any] = [
    *(sign * number for number in (2**31, 2**53, 2**63, 10**19, 10**40) for sign in (1, -1)),
    *(2**31 - 1, -(2**31) - 1, 2**63 - 1, -(2**63) - 1, 0, -1),
    *(1e19, 1e40, 1e41, 1e308, -1e308, 0.5, 1e-9, 1e-300, -0.0),
    *("9223372036854775807Ei", "9" * 64, "9" * 65, "1e40", "1e308", "-1e40", "1e-40", "NaN"),
    *("inf", "", "0x10", "1_000", "\u0661", "1e1000", "+5", "5.", "-0", True, None),
]


def of(spec: Written, status: Written | None = None) -> Written:
    metadata = {"name": "p", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    return {"metadata": metadata, "spec": {"containers": []} | spec, "status": status or {}}


def spread(**fields: Any) -> Written:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    return of({"topologySpreadConstraints": [whole | selector | fields]})


def above(bound: Any) -> Written:
    terms = [{"matchExpressions": [{"key": "size", "operator": "Gt", "values": [str(bound)]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return of({"affinity": {"nodeAffinity": required}})


def allocated(amount: Any) -> Written:
    own = {"allocatedResources": {"cpu": amount}, "resources": {"requests": {"cpu": amount}}}
    whole = {"containerStatuses": [{"name": "a"} | own], **own}
    return of({"containers": [{"name": "a"}]}, whole)


def requesting(amount: Any) -> Written:
    requests = {"requests": {"cpu": amount, "memory": amount, "example.com/gpu": amount}}
    return of({"containers": [{"name": "a", "resources": requests}] * 3})


PODS: dict[str, Callable[[Any], Written]] = {
    "priority": lambda v: of({"priority": v}),
    "requests": requesting,
    "overhead": lambda v: of({"overhead": {"cpu": v}}),
    "pod-level": lambda v: of({"resources": {"requests": {"cpu": v}}}),
    "allocated": allocated,
    "hostPort": lambda v: of({"containers": [{"name": "a", "ports": [{"hostPort": v}]}]}),
    "maxSkew": lambda v: spread(maxSkew=v),
    "minDomains": lambda v: spread(minDomains=v),
    "tolerationSeconds": lambda v: of(
        {"tolerations": [{"operator": "Exists", "tolerationSeconds": v}]}
    ),
    "Gt": above,
}
INT32 = ("priority", "hostPort", "maxSkew", "minDomains")


def read_pod(written: Written) -> Pod:
    return decode(PodObject, json.dumps(written).encode()).value()


def decide(one: Pod, extra: Node | None = None) -> None:
    """Make each kind of decision about a pod and similar pods, then remove the pods."""
    nodes = [
        node(f"n{i}", labels={"zone": f"z{i}", "size": str(i)}, cpu="4", memory="8Gi", gpu="2")
        for i in (1, 2)
    ]
    state = state_of(
        *nodes,
        *((extra,) if extra else ()),
        reservation("firm", node="n1", cpu="1"),
        reservation("yielding", node="n2", cpu="1", yields_above=-10),
    )
    others = [replace(one, uid=uid, name=name(uid), node="n1") for uid in ("a", "b")]
    for each in (one, *others):
        state.pod_seen(each)
    names = ["n1", "n2", "extra", *(f"x{i}" for i in range(120))]
    filter_nodes(one, names, state, NOW)
    for target in ("n1", "n2"):
        judge_bind(one, target, state, NOW)
    encode(asdict(explain(one, state, NOW)))
    encode([asdict(each) for each in explain_nodes(one, ["n1", "n2"], state, NOW)])
    judge_preemption(one, {"n1": ["a"], "n2": ["b"]}, state, NOW)
    state.judged(one, names, waits=True)
    wake(["n1", "n2"], state, NOW)
    outcome(hold_metrics.take(state.snapshot, state.ledger, ("cpu",)))
    state.assume(one, "n1", ())
    state.confirm(one.uid)
    assert (state.snapshot.requested >= 0).all()
    for each in (one, *others):
        state.pod_gone(each.name)
    assert not state.snapshot.requested.any()


@pytest.mark.parametrize("field", PODS)
def test_a_pod_with_a_strange_number_is_refused_or_decided_on(field: str) -> None:
    for value in NUMBERS:
        try:
            one = read_pod(PODS[field](value))
        except InvalidInput:
            assert not (isinstance(value, int) and -(2**31) <= value < 2**31) or value is True
            continue
        decide(one)
        if field in INT32:
            assert value is None or -(2**31) <= value < 2**31


@pytest.mark.parametrize("resource", ["cpu", "memory", "pods", "example.com/gpu"])
def test_a_node_with_a_strange_number_is_refused_or_decided_on(resource: str) -> None:
    for value in NUMBERS:
        metadata = {"name": "extra", "labels": {"zone": "z", "size": str(value)}}
        written = {"metadata": metadata, "status": {"allocatable": {resource: value}}}
        try:
            extra = decode(NodeObject, json.dumps(written).encode()).value()
        except InvalidInput:
            continue
        assert all(amount >= 0 for amount in extra.allocatable.values())
        decide(pod("p", cpu="1", gpu="1"), extra)


def test_what_exceeds_a_quantity_of_kubernetes_is_read_as_the_greatest() -> None:
    greatest = read_pod(of({"overhead": {"memory": str(2**63 - 1)}})).requests
    assert read_pod(of({"overhead": {"memory": "1e40"}})).requests == greatest


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 1e19, "1", 10**40])
def test_a_number_of_victims_is_an_int64(number: Any) -> None:
    victims = {"n1": {"Pods": [{"UID": "a"}], "NumPDBViolations": number}}
    with pytest.raises(InvalidInput):
        decode_preempt(json.dumps({"Pod": of({}), "NodeNameToMetaVictims": victims}).encode())


@pytest.mark.parametrize("field", ["leaseDurationSeconds", "leaseTransitions"])
@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 1e308, 10**40])
def test_a_number_of_a_lease_is_an_int32(field: str, number: Any) -> None:
    with pytest.raises(InvalidInput):
        decode(LeaseObject, json.dumps({"spec": {field: number}}).encode())
