"""The strategies that judge a pod by itself: state in, evictions out, for each of their options."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.arguments.placement import (
    NodeAffinityType,
    RemovePodsViolatingInterPodAntiAffinity,
    RemovePodsViolatingNodeAffinity,
    RemovePodsViolatingNodeTaints,
)
from reserver.rebalance.arguments.recycling import (
    ConditionFilter,
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from reserver.rebalance.arguments.selecting import ALL, Choice
from reserver.rebalance.inventory import PREFER_NO_EVICTION
from reserver.rebalance.policy import Arguments
from tests.unit.rebalance.build import evicted, node, outcome, pod, taint

Objects = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """What there is, what is asked for, and which pods go."""

    objects: Objects
    args: Arguments
    goes: list[str] = field(default_factory=list)


NODES = [node("a"), node("b")]


def _status(**status: Any) -> dict[str, Any]:
    return {"status": status}


def _owned(kind: str) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"kind": kind, "name": "x", "uid": "x"}]}}


def _created(at: str) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": f"2030-01-31T{at}Z"}}


def _waits(reason: str) -> list[dict[str, Any]]:
    return [{"state": {"waiting": {"reason": reason}}}]


def _ended(reason: str, code: int = 1) -> list[dict[str, Any]]:
    return [{"state": {"terminated": {"reason": reason, "exitCode": code}}}]


def _labelled(value: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": value}}}


CRASHES = "CrashLoopBackOff"
STATES = frozenset({CRASHES, "Error", "Failed", "Evicted"})
IN_STATE = PodLifeTime(states=STATES)
CODES = PodLifeTime(exit_codes=frozenset({137}))


def _condition(since: str | None = None, **parts: str) -> dict[str, Any]:
    base = {"type": "Ready", "status": "False", "reason": "Down"}
    return _status(conditions=[{**base, **parts, "lastTransitionTime": since}])


def _when(**parts: Any) -> PodLifeTime:
    return PodLifeTime(conditions=(ConditionFilter(**parts),))


IDLE = _condition("2030-01-31T09:59:00Z")

LIFE_TIME = {
    "older than the most": Case(
        [pod("old", "a", **_created("09:59:58.9")), pod("new", "a", **_created("09:59:59.1"))],
        PodLifeTime(max_pod_life_time_seconds=0),
        ["old"],
    ),
    "exactly as old": Case(
        [pod("p", "a", **_created("09:59:50"))], PodLifeTime(max_pod_life_time_seconds=10)
    ),
    "not created yet": Case(
        [pod("p", "a", **_created("10:00:10"))], PodLifeTime(max_pod_life_time_seconds=0)
    ),
    "the oldest of all nodes first": Case(
        [
            pod("x", "a", **_created("08:00:00")),
            pod("y", "b", **_created("07:00:00")),
            pod("z", "a", **_created("06:00:00")),
        ],
        PodLifeTime(max_pod_life_time_seconds=0),
        ["z", "y", "x"],
    ),
    "ended pods count": Case(
        [pod("p", "a", **_status(phase="Succeeded"))],
        PodLifeTime(max_pod_life_time_seconds=0),
        ["p"],
    ),
    "pods of a phase": Case(
        [pod("p", "a", **_status(phase="Failed")), pod("q", "a")], IN_STATE, ["p"]
    ),
    "a pod's reason": Case([pod("p", "a", **_status(reason="Evicted"))], IN_STATE, ["p"]),
    "a waiting container": Case(
        [
            pod("p", "a", **_status(containerStatuses=_waits(CRASHES))),
            pod("q", "a", **_status(containerStatuses=_waits("Other"))),
        ],
        IN_STATE,
        ["p"],
    ),
    "a terminated container": Case(
        [pod("p", "a", **_status(containerStatuses=_ended("Error")))], IN_STATE, ["p"]
    ),
    "init containers do not count": Case(
        [pod("p", "a", **_status(initContainerStatuses=_waits(CRASHES)))], IN_STATE
    ),
    "unless asked for": Case(
        [pod("p", "a", **_status(initContainerStatuses=_waits(CRASHES)))],
        PodLifeTime(states=STATES, including_init_containers=True),
        ["p"],
    ),
    "ephemeral containers when asked for": Case(
        [pod("p", "a", **_status(ephemeralContainerStatuses=_ended("Error")))],
        PodLifeTime(states=STATES, including_ephemeral_containers=True),
        ["p"],
    ),
    "all criteria together": Case(
        [
            pod("old", "a", **_created("08:00:00")),
            pod("both", "a", **_created("08:00:00"), **_status(reason="Evicted")),
            pod("evicted", "a", **_created("09:59:59"), **_status(reason="Evicted")),
        ],
        PodLifeTime(states=STATES, max_pod_life_time_seconds=60),
        ["both"],
    ),
    "owners of a kind": Case(
        [pod("p", "a", **_owned("Job")), pod("q", "a")],
        PodLifeTime(max_pod_life_time_seconds=0, owner_kinds=Choice(include=frozenset({"Job"}))),
        ["p"],
    ),
    "owners of no such kind": Case(
        [pod("p", "a", **_owned("Job")), pod("q", "a")],
        PodLifeTime(max_pod_life_time_seconds=0, owner_kinds=Choice(exclude=frozenset({"Job"}))),
        ["q"],
    ),
    "a condition": Case([pod("p", "a", **IDLE)], _when(type="Ready", status="False"), ["p"]),
    "a condition of another status": Case(
        [pod("p", "a", **IDLE)], _when(type="Ready", status="True")
    ),
    "a condition's reason": Case([pod("p", "a", **IDLE)], _when(reason="Down"), ["p"]),
    "a condition for long enough": Case(
        [pod("p", "a", **IDLE)], _when(type="Ready", min_s=60), ["p"]
    ),
    "not for long enough": Case([pod("p", "a", **IDLE)], _when(type="Ready", min_s=61)),
    "since nobody knows when": Case([pod("p", "a", **_condition())], _when(type="Ready", min_s=0)),
    "any of several conditions": Case(
        [pod("p", "a", **IDLE)],
        PodLifeTime(conditions=(ConditionFilter(type="X"), ConditionFilter(type="Ready"))),
        ["p"],
    ),
    "an exit code": Case(
        [pod("p", "a", **_status(containerStatuses=_ended("OOMKilled", 137)))], CODES, ["p"]
    ),
    "another exit code": Case(
        [pod("p", "a", **_status(containerStatuses=_ended("Error", 1)))], CODES
    ),
    "an exit code of an init container": Case(
        [pod("p", "a", **_status(initContainerStatuses=_ended("OOMKilled", 137)))], CODES
    ),
    "when that is asked for": Case(
        [pod("p", "a", **_status(initContainerStatuses=_ended("OOMKilled", 137)))],
        PodLifeTime(exit_codes=frozenset({137}), including_init_containers=True),
        ["p"],
    ),
}

FAILED = _status(phase="Failed", reason="Evicted")
OOM = _status(phase="Failed", containerStatuses=_ended("OOMKilled", 137))
INIT_OOM = _status(phase="Failed", initContainerStatuses=_ended("OOMKilled", 137))

FAILED_PODS = {
    "failed pods": Case([pod("p", "a", **FAILED), pod("q", "a")], RemoveFailedPods(), ["p"]),
    "an hour old by default": Case(
        [
            pod("p", "a", **FAILED, **_created("09:00:00")),
            pod("q", "a", **FAILED, **_created("09:00:01")),
        ],
        RemoveFailedPods(),
        ["p"],
    ),
    "created in the future": Case(
        [pod("p", "a", **FAILED, **_created("11:00:00"))], RemoveFailedPods(), ["p"]
    ),
    "owners of a kind stay": Case(
        [pod("p", "a", **FAILED, **_owned("Job")), pod("q", "a", **FAILED)],
        RemoveFailedPods(exclude_owner_kinds=frozenset({"Job"})),
        ["q"],
    ),
    "a reason of the pod": Case(
        [pod("p", "a", **FAILED), pod("q", "a", **OOM)],
        RemoveFailedPods(reasons=frozenset({"Evicted"})),
        ["p"],
    ),
    "a reason of a container": Case(
        [pod("p", "a", **FAILED), pod("q", "a", **OOM), pod("r", "a", **INIT_OOM)],
        RemoveFailedPods(reasons=frozenset({"OOMKilled"})),
        ["q"],
    ),
    "an empty reason is none": Case(
        [pod("p", "a", **_status(phase="Failed", containerStatuses=_ended("")))],
        RemoveFailedPods(reasons=frozenset({""})),
    ),
    "an exit code": Case(
        [pod("p", "a", **FAILED), pod("q", "a", **OOM), pod("r", "a", **INIT_OOM)],
        RemoveFailedPods(exit_codes=frozenset({137})),
        ["q"],
    ),
    "init containers when asked for": Case(
        [pod("q", "a", **OOM), pod("r", "a", **INIT_OOM)],
        RemoveFailedPods(exit_codes=frozenset({137}), including_init_containers=True),
        ["q", "r"],
    ),
}


def _restarted(count: int, init: int = 0, **state: Any) -> dict[str, Any]:
    return _status(
        containerStatuses=[{"restartCount": count, **state}],
        initContainerStatuses=[{"restartCount": init}],
    )


RESTARTS = {
    "as often as the threshold": Case(
        [pod("p", "a", **_restarted(5)), pod("q", "a", **_restarted(4))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5),
        ["p"],
    ),
    "the worst of each node first": Case(
        [
            pod("p", "a", **_restarted(5)),
            pod("q", "a", **_restarted(7)),
            pod("r", "b", **_restarted(9)),
        ],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5),
        ["q", "p", "r"],
    ),
    "init containers do not count": Case(
        [pod("p", "a", **_restarted(3, init=2))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5),
    ),
    "unless asked for": Case(
        [pod("p", "a", **_restarted(3, init=2))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5, including_init_containers=True),
        ["p"],
    ),
    "a state": Case(
        [
            pod("p", "a", **_restarted(5)),
            pod("q", "a", **_restarted(5, state={"waiting": {"reason": CRASHES}})),
        ],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5, states=frozenset({CRASHES})),
        ["q"],
    ),
    "a phase": Case(
        [pod("p", "a", **_restarted(5))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5, states=frozenset({"Running"})),
        ["p"],
    ),
}

TAINTED = node("t", taints=[taint("k", "v")])
SOFT = node("t", taints=[taint("k", "v", "PreferNoSchedule")])
ON_T = pod("p", "t")


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


def _in(zone: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}


def _needs(zone: str) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [_in(zone)]}
    return _affinity(requiredDuringSchedulingIgnoredDuringExecution=required)


def _prefers(*wishes: tuple[int, str]) -> dict[str, Any]:
    preferred = [{"weight": weight, "preference": _in(zone)} for weight, zone in wishes]
    return _affinity(preferredDuringSchedulingIgnoredDuringExecution=preferred)


def _affinity(**kinds: Any) -> dict[str, Any]:
    return {"spec": {"affinity": {"nodeAffinity": kinds}}}


ZONES = [node("z1", labels={"zone": "1"}), node("z2", labels={"zone": "2"})]
REQUIRED = RemovePodsViolatingNodeAffinity(types=(NodeAffinityType.REQUIRED,))
PREFERRED = RemovePodsViolatingNodeAffinity(types=(NodeAffinityType.PREFERRED,))

AFFINITY = {
    "the node no longer matches": Case([*ZONES, pod("p", "z1", **_needs("2"))], REQUIRED, ["p"]),
    "the node matches": Case([*ZONES, pod("p", "z2", **_needs("2"))], REQUIRED),
    "no node matches": Case([*ZONES, pod("p", "z1", **_needs("3"))], REQUIRED),
    "the one that matches is full": Case(
        [
            *ZONES,
            pod("x", "z2", requests={"cpu": "4"}),
            pod("p", "z1", requests={"cpu": "1"}, **_needs("2")),
        ],
        REQUIRED,
    ),
    "a node selector alone is never looked at": Case(
        [*ZONES, pod("p", "z1", spec={"nodeSelector": {"zone": "2"}})], REQUIRED
    ),
    "that kind is not asked for": Case([*ZONES, pod("p", "z1", **_needs("2"))], PREFERRED),
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
        [*ZONES, pod("p", "z1", **_prefers((1, "2"))), pod("q", "z1", **_needs("2"))],
        RemovePodsViolatingNodeAffinity(types=tuple(NodeAffinityType)),
        ["q", "p"],
    ),
    "both kinds, in the order of the file": Case(
        [*ZONES, pod("p", "z1", **_prefers((1, "2"))), pod("q", "z1", **_needs("2"))],
        RemovePodsViolatingNodeAffinity(types=tuple(reversed(NodeAffinityType))),
        ["p", "q"],
    ),
}


def _keeps_from(app: str, key: str = "zone", **term: Any) -> dict[str, Any]:
    required = [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **term}]
    kinds = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"spec": {"affinity": {"podAntiAffinity": kinds}}}


ONE_ZONE = [node("n1", labels={"zone": "1"}), node("n2", labels={"zone": "1"})]
APART = RemovePodsViolatingInterPodAntiAffinity()

ANTI_AFFINITY = {
    "a pod beside one that it keeps from": Case(
        [*NODES, pod("p", "a", **_keeps_from("x")), pod("x", "a", **_labelled("x"))], APART, ["p"]
    ),
    "on another node of the zone": Case(
        [*ONE_ZONE, pod("p", "n1", **_keeps_from("x")), pod("x", "n2", **_labelled("x"))],
        APART,
        ["p"],
    ),
    "on another node without the label": Case(
        [*NODES, pod("p", "a", **_keeps_from("x")), pod("x", "b", **_labelled("x"))], APART
    ),
    "in another namespace": Case(
        [
            *NODES,
            pod("p", "a", **_keeps_from("x")),
            pod("x", "a", namespace="other", **_labelled("x")),
        ],
        APART,
    ),
    "in a namespace that the term names": Case(
        [
            *NODES,
            pod("p", "a", **_keeps_from("x", namespaces=["other"])),
            pod("x", "a", namespace="other", **_labelled("x")),
        ],
        APART,
        ["p"],
    ),
    "namespace selectors are ignored": Case(
        [
            *NODES,
            pod("p", "a", **_keeps_from("x", namespaceSelector={})),
            pod("x", "a", namespace="other", **_labelled("x")),
        ],
        APART,
    ),
    "a pod of its own name": Case(
        [
            *NODES,
            pod("p", "a", **_keeps_from("x", namespaces=["other"])),
            pod("p", "a", namespace="other", **_labelled("x")),
        ],
        APART,
    ),
    "the last of those that keep from each other stays": Case(
        [*NODES, *(pod(f"p{i}", "a", **_keeps_from("x"), **_labelled("x")) for i in range(3))],
        APART,
        ["p0", "p1"],
    ),
    "the least important goes": Case(
        [
            *NODES,
            pod("p", "a", **_labelled("x"), spec={**_keeps_from("x")["spec"], "priority": 10}),
            pod("q", "a", **_labelled("x"), spec={**_keeps_from("x")["spec"], "priority": 5}),
        ],
        APART,
        ["q"],
    ),
    "without priority before priority, best effort before burstable": Case(
        [
            *NODES,
            pod("a1", "a", **_labelled("x"), spec={**_keeps_from("x")["spec"], "priority": -5}),
            pod("a2", "a", **_labelled("x"), **_keeps_from("x"), status={"qosClass": "Burstable"}),
            pod("a3", "a", **_labelled("x"), **_keeps_from("x")),
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
                **_keeps_from("x"),
            ),
            pod("q", "a", **_labelled("x"), **_keeps_from("x")),
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
                **_keeps_from("x"),
            ),
            pod("q", "a", **_labelled("x"), **_keeps_from("x")),
        ],
        APART,
        ["q"],
    ),
    "a conflict that the labels hide": Case(
        [
            *NODES,
            pod("p", "a", **_keeps_from("x"), metadata={"labels": {"look": "yes"}}),
            pod("x", "a", **_labelled("x")),
        ],
        RemovePodsViolatingInterPodAntiAffinity(label_selector=equals({"look": "yes"})),
    ),
    "a pod that has ended": Case(
        [*NODES, pod("p", "a", **_keeps_from("x")), pod("x", "a", **_labelled("x"), **FAILED)],
        APART,
    ),
}

CASES = {
    f"{strategy}: {name}": case
    for strategy, cases in {
        "PodLifeTime": LIFE_TIME,
        "RemoveFailedPods": FAILED_PODS,
        "TooManyRestarts": RESTARTS,
        "NodeTaints": TAINTS,
        "NodeAffinity": AFFINITY,
        "InterPodAntiAffinity": ANTI_AFFINITY,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_strategy_evicts(name: str) -> None:
    case = CASES[name]
    present = {each["metadata"]["name"] for each in case.objects if each["kind"] == "Node"}
    more = [each for each in NODES if each["metadata"]["name"] not in present]

    assert evicted([*more, *case.objects], case.args) == case.goes


WRONG: dict[type[Any], tuple[dict[str, Any], dict[str, Any]]] = {
    # A pod that the strategy evicts, and its arguments but for what chooses pods.
    PodLifeTime: (_created("08:00:00"), {"max_pod_life_time_seconds": 0}),
    RemoveFailedPods: (FAILED, {}),
    RemovePodsHavingTooManyRestarts: (_restarted(5), {"pod_restart_threshold": 5}),
    RemovePodsViolatingNodeTaints: ({}, {}),
    RemovePodsViolatingNodeAffinity: (_needs("2"), {"types": (NodeAffinityType.REQUIRED,)}),
    RemovePodsViolatingInterPodAntiAffinity: (_keeps_from("x"), {}),
}


@pytest.mark.parametrize("strategy", WRONG)
def test_a_strategy_looks_at_its_namespaces_and_labels(strategy: type[Arguments]) -> None:
    parts, args = WRONG[strategy]
    labels = {"metadata": {**parts.get("metadata", {}), "labels": {"app": "x"}}}
    objects = [
        node("z1", labels={"zone": "1"}, taints=[taint("k")]),
        node("z2", labels={"zone": "2"}),
        pod("p", "z1", **{**parts, **labels}),
        pod("q", "z1", namespace="other", **{**parts, **labels}),
        pod("o", "z1", namespace="other", **{**parts, **labels}),
        pod("r", "z1", **{**parts, **labels}),
    ]

    def chosen(**choice: Any) -> set[str]:
        return set(evicted(objects, strategy(**args, **choice)))

    everywhere = chosen()
    shop = chosen(namespaces=Choice(include=frozenset({"shop"})))
    others = chosen(namespaces=Choice(exclude=frozenset({"shop"})))

    assert everywhere == shop | others
    assert shop
    assert shop <= {"p", "r"}
    assert others
    assert others <= {"q", "o"}
    assert chosen(namespaces=ALL, label_selector=equals({"app": "x"})) == everywhere
    assert not chosen(label_selector=equals({"app": "y"}))


@pytest.mark.parametrize("strategy", WRONG)
def test_a_strategy_asks_for_a_fit_elsewhere(strategy: type[Arguments]) -> None:
    parts, args = WRONG[strategy]
    metadata = {**parts.get("metadata", {}), "labels": {"app": "x"}}
    objects = [
        node("z1", labels={"zone": "1"}, taints=[taint("k")]),
        node("z2", labels={"zone": "2"}),
        pod("p", "z1", **{**parts, "metadata": metadata}, requests={"cpu": "5"}),
        pod("r", "z1", **{**parts, "metadata": metadata}, requests={"cpu": "5"}),
    ]

    assert not evicted(objects, strategy(**args), evictor=DefaultEvictor(node_fit=True))


def test_nodes_that_are_not_ready_or_not_selected_are_not_looked_at() -> None:
    nodes = [
        node("a", labels={"pool": "x"}),
        node("b", labels={"pool": "x"}),
        node("c"),
        node("d", labels={"pool": "x"}, conditions=[{"type": "Ready", "status": "False"}]),
    ]
    pods = [pod(f"on-{name}", name) for name in "abcd"]

    names = evicted(
        [*nodes, *pods],
        PodLifeTime(max_pod_life_time_seconds=0),
        node_selector=equals({"pool": "x"}),
    )

    assert names == ["on-a", "on-b"]


def test_an_eviction_says_who_asked_for_it_and_why() -> None:
    (eviction,) = outcome([*NODES, TAINTED, ON_T], RemovePodsViolatingNodeTaints()).evictions

    assert (eviction.profile, eviction.strategy) == ("test", "RemovePodsViolatingNodeTaints")
    assert eviction.reason == "does not tolerate the taint k=v:NoSchedule"
