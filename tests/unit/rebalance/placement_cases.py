"""Evictions of strategies about placement: taints, affinity, anti-affinity."""

from typing import Any

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.cluster_state import PREFER_NO_EVICTION
from tests.unit.rebalance.build import node, pod, taint
from tests.unit.rebalance.cases import (
    FAILED,
    NODES,
    ON_T,
    TAINTED,
    Case,
    affinity,
    in_zone,
    keeps_from,
    needs,
)


def _labelled(value: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": value}}}


SOFT = node("t", taints=[taint("k", "v", "PreferNoSchedule")])


def _tolerating(**toleration: Any) -> dict[str, Any]:
    return {"spec": {"tolerations": [toleration]}}


TAINTS = {
    "a taint that is not tolerated": Case(
        [TAINTED, ON_T, pod("q", "a")], RemovePodsViolatingNodeTaints(), ["p"]
    ),
    "a taint that is tolerated": Case(
        [TAINTED, pod("p", "t", **_tolerating(key="k", operator="Exists"))],
        RemovePodsViolatingNodeTaints(),
    ),
    "a soft taint": Case([SOFT, ON_T], RemovePodsViolatingNodeTaints()),
    "a soft taint that counts": Case(
        [SOFT, ON_T], RemovePodsViolatingNodeTaints(include_prefer_no_schedule=True), ["p"]
    ),
    "a taint NoExecute": Case(
        [node("t", taints=[taint("k", effect="NoExecute")]), ON_T], RemovePodsViolatingNodeTaints()
    ),
    "a taint whose key is excluded": Case(
        [TAINTED, ON_T], RemovePodsViolatingNodeTaints(excluded_taints=frozenset({"k"}))
    ),
    "a taint that is excluded": Case(
        [TAINTED, ON_T], RemovePodsViolatingNodeTaints(excluded_taints=frozenset({"k=v"}))
    ),
    "another value is excluded": Case(
        [TAINTED, ON_T], RemovePodsViolatingNodeTaints(excluded_taints=frozenset({"k=w"})), ["p"]
    ),
    "only others are included": Case(
        [TAINTED, ON_T], RemovePodsViolatingNodeTaints(included_taints=frozenset({"x"}))
    ),
    "it is included": Case(
        [TAINTED, ON_T], RemovePodsViolatingNodeTaints(included_taints=frozenset({"k=v"})), ["p"]
    ),
    "none is included": Case(
        [TAINTED, ON_T], RemovePodsViolatingNodeTaints(included_taints=frozenset())
    ),
    "ended pods are left": Case(
        [TAINTED, pod("p", "t", **FAILED)], RemovePodsViolatingNodeTaints()
    ),
}


def _prefers(*wishes: tuple[int, str]) -> dict[str, Any]:
    preferred = [{"weight": weight, "preference": in_zone(zone)} for weight, zone in wishes]
    return affinity(preferredDuringSchedulingIgnoredDuringExecution=preferred)


ZONES = [node("z1", labels={"zone": "1"}), node("z2", labels={"zone": "2"})]

REQUIRED = RemovePodsViolatingNodeAffinity(node_affinity_type=(NodeAffinityType.REQUIRED,))

PREFERRED = RemovePodsViolatingNodeAffinity(node_affinity_type=(NodeAffinityType.PREFERRED,))

AFFINITY = {
    "the node no longer matches": Case([*ZONES, pod("p", "z1", **needs("2"))], REQUIRED, ["p"]),
    "the node matches": Case([*ZONES, pod("p", "z2", **needs("2"))], REQUIRED),
    "no node matches": Case([*ZONES, pod("p", "z1", **needs("3"))], REQUIRED),
    "the one that matches is full": Case(
        [
            *ZONES,
            pod("x", "z2", requests={"cpu": "4"}),
            pod("p", "z1", requests={"cpu": "1"}, **needs("2")),
        ],
        REQUIRED,
    ),
    "a node selector alone is never looked at": Case(
        [*ZONES, pod("p", "z1", spec={"nodeSelector": {"zone": "2"}})], REQUIRED
    ),
    "that kind is not asked for": Case([*ZONES, pod("p", "z1", **needs("2"))], PREFERRED),
    "a better node": Case([*ZONES, pod("p", "z1", **_prefers((1, "2")))], PREFERRED, ["p"]),
    "the best node": Case([*ZONES, pod("p", "z2", **_prefers((1, "2")))], PREFERRED),
    "weights are added up": Case(
        [*ZONES, pod("p", "z1", **_prefers((2, "2"), (1, "1"), (1, "1")))], PREFERRED
    ),
    "a better node that is full, and its own fits": Case(
        [
            *ZONES,
            pod("x", "z2", requests={"cpu": "4"}),
            pod("p", "z1", requests={"cpu": "4"}, **_prefers((1, "2"))),
        ],
        PREFERRED,
        ["p"],
    ),
    "both kinds": Case(
        [*ZONES, pod("p", "z1", **_prefers((1, "2"))), pod("q", "z1", **needs("2"))],
        RemovePodsViolatingNodeAffinity(node_affinity_type=tuple(NodeAffinityType)),
        ["q", "p"],
    ),
    "both kinds, in the order of the file": Case(
        [*ZONES, pod("p", "z1", **_prefers((1, "2"))), pod("q", "z1", **needs("2"))],
        RemovePodsViolatingNodeAffinity(node_affinity_type=tuple(reversed(NodeAffinityType))),
        ["p", "q"],
    ),
}


ONE_ZONE = [node("n1", labels={"zone": "1"}), node("n2", labels={"zone": "1"})]

APART = RemovePodsViolatingInterPodAntiAffinity()

ANTI_AFFINITY = {
    "a pod beside one that it keeps from": Case(
        [*NODES, pod("p", "a", **keeps_from("x")), pod("x", "a", **_labelled("x"))], APART, ["p"]
    ),
    "on another node of the zone": Case(
        [*ONE_ZONE, pod("p", "n1", **keeps_from("x")), pod("x", "n2", **_labelled("x"))],
        APART,
        ["p"],
    ),
    "on another node without the label": Case(
        [*NODES, pod("p", "a", **keeps_from("x")), pod("x", "b", **_labelled("x"))], APART
    ),
    "in another namespace": Case(
        [
            *NODES,
            pod("p", "a", **keeps_from("x")),
            pod("x", "a", namespace="other", **_labelled("x")),
        ],
        APART,
    ),
    "in a namespace that the term names": Case(
        [
            *NODES,
            pod("p", "a", **keeps_from("x", namespaces=["other"])),
            pod("x", "a", namespace="other", **_labelled("x")),
        ],
        APART,
        ["p"],
    ),
    "namespace selectors are ignored": Case(
        [
            *NODES,
            pod("p", "a", **keeps_from("x", namespaceSelector={})),
            pod("x", "a", namespace="other", **_labelled("x")),
        ],
        APART,
    ),
    "a pod of its own name": Case(
        [
            *NODES,
            pod("p", "a", **keeps_from("x", namespaces=["other"])),
            pod("p", "a", namespace="other", **_labelled("x")),
        ],
        APART,
    ),
    "the last of those that keep from each other stays": Case(
        [*NODES, *(pod(f"p{i}", "a", **keeps_from("x"), **_labelled("x")) for i in range(3))],
        APART,
        ["p0", "p1"],
    ),
    "the least important goes": Case(
        [
            *NODES,
            pod("p", "a", **_labelled("x"), spec={**keeps_from("x")["spec"], "priority": 10}),
            pod("q", "a", **_labelled("x"), spec={**keeps_from("x")["spec"], "priority": 5}),
        ],
        APART,
        ["q"],
    ),
    "without priority before priority, best effort before burstable": Case(
        [
            *NODES,
            pod("a1", "a", **_labelled("x"), spec={**keeps_from("x")["spec"], "priority": -5}),
            pod("a2", "a", **_labelled("x"), **keeps_from("x"), status={"qosClass": "Burstable"}),
            pod("a3", "a", **_labelled("x"), **keeps_from("x")),
        ],
        APART,
        ["a3", "a2"],
    ),
    "of equals the one that does not mind": Case(
        [
            *NODES,
            pod(
                "p",
                "a",
                metadata={"labels": {"app": "x"}, "annotations": {PREFER_NO_EVICTION: ""}},
                **keeps_from("x"),
            ),
            pod("q", "a", **_labelled("x"), **keeps_from("x")),
        ],
        APART,
        ["q"],
    ),
    "a protected pod stays, and is in the way": Case(
        [
            *NODES,
            pod(
                "p",
                "a",
                metadata={"labels": {"app": "x"}, "ownerReferences": []},
                **keeps_from("x"),
            ),
            pod("q", "a", **_labelled("x"), **keeps_from("x")),
        ],
        APART,
        ["q"],
    ),
    "a conflict that the labels hide": Case(
        [
            *NODES,
            pod("p", "a", **keeps_from("x"), metadata={"labels": {"look": "yes"}}),
            pod("x", "a", **_labelled("x")),
        ],
        RemovePodsViolatingInterPodAntiAffinity(label_selector=equals({"look": "yes"})),
    ),
    "a pod that has ended": Case(
        [*NODES, pod("p", "a", **keeps_from("x")), pod("x", "a", **_labelled("x"), **FAILED)],
        APART,
    ),
}
