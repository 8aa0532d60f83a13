"""Random arguments of strategies, of each of their options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hack.descheduler.workloads import ENDS, KINDS, REASONS, STATES
from hack.differential.draw import (
    NAMESPACES,
    POD_LABELS,
    Json,
    Random,
    label_selector,
)


def _selecting(draw: Random) -> Json:
    args: Json = {}
    if draw.random() < 0.15:
        args["labelSelector"] = label_selector(draw, POD_LABELS)
    return args | _namespaces(draw)


def _namespaces(draw: Random) -> Json:
    if draw.random() < 0.8:
        return {}
    return {"namespaces": {draw.choice(("include", "exclude")): _some(draw, NAMESPACES)}}


def _some(draw: Random, things: tuple[Any, ...]) -> list[Any]:
    return draw.sample(things, draw.randint(1, 2))


def _options(draw: Random, options: dict[str, Callable[[], Any]], likely: float = 0.35) -> Json:
    return {name: make() for name, make in options.items() if draw.random() < likely}


def _life_time(draw: Random) -> Json:
    states = ("Running", "Pending", "Succeeded", "Failed", *STATES, "Evicted", "Error", "OOMKilled")
    criteria = _options(
        draw,
        {
            "maxPodLifeTimeSeconds": lambda: draw.choice((200, 1_000, 5_000, 50_000)),
            "states": lambda: _some(draw, states),
            "conditions": lambda: [_condition(draw)],
            "exitCodes": lambda: _some(draw, (0, 1, 137)),
        },
    )
    args = dict(list(criteria.items())[:2]) or {"maxPodLifeTimeSeconds": 1_000}
    args |= _options(
        draw,
        {
            "ownerKinds": lambda: {draw.choice(("include", "exclude")): _some(draw, KINDS)},
            "includingInitContainers": lambda: True,
            "includingEphemeralContainers": lambda: True,
        },
        0.2,
    )
    return args | _selecting(draw)


def _condition(draw: Random) -> Json:
    return _options(
        draw,
        {
            "status": lambda: draw.choice(("True", "False")),
            "reason": lambda: draw.choice(("PodCompleted", "Other")),
            "minTimeSinceLastTransitionSeconds": lambda: draw.choice((200, 5_000)),
        },
    ) | {"type": draw.choice(("Ready", "Initialized"))}


def _failed(draw: Random) -> Json:
    options: dict[str, Callable[[], Any]] = {
        "excludeOwnerKinds": lambda: _some(draw, KINDS),
        "minPodLifetimeSeconds": lambda: draw.choice((0, 200, 5_000)),
        "reasons": lambda: _some(draw, (*REASONS, *ENDS, *STATES)),
        "exitCodes": lambda: _some(draw, (0, 1, 137)),
        "includingInitContainers": lambda: True,
    }
    return _options(draw, options) | _selecting(draw)


def _restarts(draw: Random) -> Json:
    options: dict[str, Callable[[], Any]] = {
        "includingInitContainers": lambda: True,
        "states": lambda: _some(draw, ("Running", "CrashLoopBackOff")),
    }
    threshold = {"podRestartThreshold": draw.choice((1, 4, 10))}
    return threshold | _options(draw, options) | _selecting(draw)


def _node_affinity(draw: Random) -> Json:
    kinds = ("required", "preferred")
    types = [f"{each}DuringSchedulingIgnoredDuringExecution" for each in _some(draw, kinds)]
    return {"nodeAffinityType": types} | _selecting(draw)


def _taints(draw: Random) -> Json:
    taints = ("dedicated", "gpu", "dedicated=web", "gpu=db", "node.kubernetes.io/unschedulable")
    kind = draw.random()
    args: Json = {}
    if kind < 0.25:
        args["excludedTaints"] = _some(draw, taints)
    elif kind < 0.5:
        args["includedTaints"] = draw.choice(([], _some(draw, taints)))
    return args | _options(draw, {"includePreferNoSchedule": lambda: True}) | _selecting(draw)


def _spread(draw: Random) -> Json:
    options: dict[str, Callable[[], Any]] = {
        "constraints": lambda: _some(draw, ("DoNotSchedule", "ScheduleAnyway")),
        "topologyBalanceNodeFit": lambda: draw.random() < 0.3,
    }
    return _options(draw, options) | _selecting(draw)


def _duplicates(draw: Random) -> Json:
    kinds = {"excludeOwnerKinds": lambda: _some(draw, KINDS)}
    return _options(draw, kinds, 0.2) | _namespaces(draw)


def _resources(draw: Random) -> list[str]:
    known = ["cpu", "memory", "pods", "example.com/gpu"]
    return draw.sample(known, draw.choice((1, 1, 2, 3)))


def _utilization(draw: Random) -> Json:
    options: dict[str, Callable[[], Any]] = {
        "numberOfNodes": lambda: draw.choice((0, 1, 1, 2)),
        "evictableNamespaces": lambda: {"exclude": _some(draw, NAMESPACES)},
    }
    return _options(draw, options, 0.2)


def _low(draw: Random) -> Json:
    names = _resources(draw)
    low = {name: draw.choice((10, 20, 30.5, 45)) for name in names}
    args: Json = {"thresholds": low}
    args["targetThresholds"] = {name: low[name] + draw.choice((0, 5, 10, 25)) for name in names}
    if draw.random() < 0.25:
        args["useDeviationThresholds"] = True
    if draw.random() < 0.2:
        args["evictionLimits"] = {"node": draw.choice((0, 1, 2, 3))}
    return args | _utilization(draw)


def _high(draw: Random) -> Json:
    args: Json = {"thresholds": {name: draw.choice((20, 30, 50, 70)) for name in _resources(draw)}}
    if draw.random() < 0.2:
        args["evictionModes"] = ["OnlyThresholdingResources"]
    return args | _utilization(draw)


DESCHEDULE: dict[str, Callable[[Random], Json]] = {
    "PodLifeTime": _life_time,
    "RemoveFailedPods": _failed,
    "RemovePodsHavingTooManyRestarts": _restarts,
    "RemovePodsViolatingInterPodAntiAffinity": _selecting,
    "RemovePodsViolatingNodeAffinity": _node_affinity,
    "RemovePodsViolatingNodeTaints": _taints,
}

BALANCE: dict[str, Callable[[Random], Json]] = {
    "RemoveDuplicates": _duplicates,
    "RemovePodsViolatingTopologySpreadConstraint": _spread,
    "LowNodeUtilization": _low,
    "HighNodeUtilization": _high,
}
