"""Evictions of strategies about age, end and restarts of pods."""

from typing import Any

from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.arguments.recycling import (
    ConditionFilter,
    PodLifeTime,
    RemoveFailedPods,
    RemovePodsHavingTooManyRestarts,
)
from tests.unit.rebalance.build import pod
from tests.unit.rebalance.cases import FAILED, Case, created, restarted, status


def _owned(kind: str) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"kind": kind, "name": "x", "uid": "x"}]}}


def _waits(reason: str) -> list[dict[str, Any]]:
    return [{"name": "a", "state": {"waiting": {"reason": reason}}}]


def _ended(reason: str, code: int = 1) -> list[dict[str, Any]]:
    return [{"name": "a", "state": {"terminated": {"reason": reason, "exitCode": code}}}]


CRASHES = "CrashLoopBackOff"

STATES = frozenset({CRASHES, "Error", "Failed", "Evicted"})

IN_STATE = PodLifeTime(states=STATES)

CODES = PodLifeTime(exit_codes=frozenset({137}))


def _condition(since: str | None = None, **parts: str) -> dict[str, Any]:
    base = {"type": "Ready", "status": "False", "reason": "Down"}
    return status(conditions=[{**base, **parts, "lastTransitionTime": since}])


def _when(**parts: Any) -> PodLifeTime:
    return PodLifeTime(conditions=(ConditionFilter(**parts),))


IDLE = _condition("2030-01-31T09:59:00Z")

LIFE_TIME = {
    "older than the most": Case(
        [pod("old", "a", **created("09:59:58.9")), pod("new", "a", **created("09:59:59.1"))],
        PodLifeTime(max_pod_life_time_seconds=0),
        ["old"],
    ),
    "exactly as old": Case(
        [pod("p", "a", **created("09:59:50"))], PodLifeTime(max_pod_life_time_seconds=10)
    ),
    "not created yet": Case(
        [pod("p", "a", **created("10:00:10"))], PodLifeTime(max_pod_life_time_seconds=0)
    ),
    "the oldest of all nodes first": Case(
        [
            pod("x", "a", **created("08:00:00")),
            pod("y", "b", **created("07:00:00")),
            pod("z", "a", **created("06:00:00")),
        ],
        PodLifeTime(max_pod_life_time_seconds=0),
        ["z", "y", "x"],
    ),
    "ended pods count": Case(
        [pod("p", "a", **status(phase="Succeeded"))],
        PodLifeTime(max_pod_life_time_seconds=0),
        ["p"],
    ),
    "pods of a phase": Case(
        [pod("p", "a", **status(phase="Failed")), pod("q", "a")], IN_STATE, ["p"]
    ),
    "a pod's reason": Case([pod("p", "a", **status(reason="Evicted"))], IN_STATE, ["p"]),
    "a waiting container": Case(
        [
            pod("p", "a", **status(containerStatuses=_waits(CRASHES))),
            pod("q", "a", **status(containerStatuses=_waits("Other"))),
        ],
        IN_STATE,
        ["p"],
    ),
    "a terminated container": Case(
        [pod("p", "a", **status(containerStatuses=_ended("Error")))], IN_STATE, ["p"]
    ),
    "init containers do not count": Case(
        [pod("p", "a", **status(initContainerStatuses=_waits(CRASHES)))], IN_STATE
    ),
    "unless asked for": Case(
        [pod("p", "a", **status(initContainerStatuses=_waits(CRASHES)))],
        PodLifeTime(states=STATES, including_init_containers=True),
        ["p"],
    ),
    "ephemeral containers when asked for": Case(
        [pod("p", "a", **status(ephemeralContainerStatuses=_ended("Error")))],
        PodLifeTime(states=STATES, including_ephemeral_containers=True),
        ["p"],
    ),
    "all criteria together": Case(
        [
            pod("old", "a", **created("08:00:00")),
            pod("both", "a", **created("08:00:00"), **status(reason="Evicted")),
            pod("evicted", "a", **created("09:59:59"), **status(reason="Evicted")),
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
        [pod("p", "a", **status(containerStatuses=_ended("OOMKilled", 137)))], CODES, ["p"]
    ),
    "another exit code": Case(
        [pod("p", "a", **status(containerStatuses=_ended("Error", 1)))], CODES
    ),
    "an exit code of an init container": Case(
        [pod("p", "a", **status(initContainerStatuses=_ended("OOMKilled", 137)))], CODES
    ),
    "when that is asked for": Case(
        [pod("p", "a", **status(initContainerStatuses=_ended("OOMKilled", 137)))],
        PodLifeTime(exit_codes=frozenset({137}), including_init_containers=True),
        ["p"],
    ),
}

OOM = status(phase="Failed", containerStatuses=_ended("OOMKilled", 137))

INIT_OOM = status(phase="Failed", initContainerStatuses=_ended("OOMKilled", 137))

FAILED_PODS = {
    "failed pods": Case([pod("p", "a", **FAILED), pod("q", "a")], RemoveFailedPods(), ["p"]),
    "an hour old by default": Case(
        [
            pod("p", "a", **FAILED, **created("09:00:00")),
            pod("q", "a", **FAILED, **created("09:00:01")),
        ],
        RemoveFailedPods(),
        ["p"],
    ),
    "created in the future": Case(
        [pod("p", "a", **FAILED, **created("11:00:00"))], RemoveFailedPods(), ["p"]
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
        [pod("p", "a", **status(phase="Failed", containerStatuses=_ended("")))],
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


RESTARTS = {
    "as often as the threshold": Case(
        [pod("p", "a", **restarted(5)), pod("q", "a", **restarted(4))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5),
        ["p"],
    ),
    "the worst of each node first": Case(
        [
            pod("p", "a", **restarted(5)),
            pod("q", "a", **restarted(7)),
            pod("r", "b", **restarted(9)),
        ],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5),
        ["q", "p", "r"],
    ),
    "init containers do not count": Case(
        [pod("p", "a", **restarted(3, init=2))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5),
    ),
    "unless asked for": Case(
        [pod("p", "a", **restarted(3, init=2))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5, including_init_containers=True),
        ["p"],
    ),
    "a state": Case(
        [
            pod("p", "a", **restarted(5)),
            pod("q", "a", **restarted(5, state={"waiting": {"reason": CRASHES}})),
        ],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5, states=frozenset({CRASHES})),
        ["q"],
    ),
    "a phase": Case(
        [pod("p", "a", **restarted(5))],
        RemovePodsHavingTooManyRestarts(pod_restart_threshold=5, states=frozenset({"Running"})),
        ["p"],
    ),
}
