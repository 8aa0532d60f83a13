"""Random pods of one template, most of them where they should not be, of any age and status."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple

from hack.differential import pods
from hack.differential.draw import HOSTNAME, NODE_LABELS, ZONE, Json, Random

STATES = ("CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating", "PodInitializing")
ENDS = ("Error", "OOMKilled", "Completed", "ContainerCannotRun")
REASONS = ("Evicted", "NodeAffinity", "Shutdown", "UnexpectedAdmissionError")
KINDS = ("ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "Job", "DaemonSet")
AGES_S = (60, 400, 2_000, 9_000, 100_000)
"""Far from each threshold that `policies` draws, so that a slow run sees the same."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EVICT = "descheduler.alpha.kubernetes.io/evict"
_KEEP = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


class Theme(NamedTuple):
    """The strategies that find more to do."""

    strategies: frozenset[str]

    def likely(self, strategy: str, else_: float, if_: float) -> float:
        """Return a probability, or a weight, that depends on a strategy."""
        return if_ if strategy in self.strategies else else_


class Moment(NamedTuple):
    """When pods are looked at, and by which strategies."""

    now: float
    theme: Theme


def workload(draw: Random, names: list[str], numbers: count[int], at: Moment) -> list[Json]:
    """Return the pods of a template, most of them on few nodes."""
    number = next(numbers)
    template = pods.pending(draw, "", names, ["data", "absent"])
    if draw.random() < 0.6:  # Constraints keep pods from moving.
        for field in ("affinity", "nodeSelector", "topologySpreadConstraints", "tolerations"):
            template["spec"].pop(field, None)
    _add_violations(draw, template, at.theme)
    template["spec"].pop("schedulerName", None)
    if draw.random() < 0.1:
        template["metadata"]["namespace"] = "kube-system"
    _add_storage(draw, template)
    owners = _owners(draw, f"w{number}")
    if owners:
        template["metadata"]["ownerReferences"] = owners
    is_uneven = draw.random() < at.theme.likely("LowNodeUtilization", 0.0, 0.9)
    crowded = names[:1] if is_uneven else draw.choices(names, k=draw.choice((1, 2, 2, 4)))
    found = []
    for _ in range(draw.choice((1, 3, 5, 8, 12))):
        node = draw.choice(crowded if draw.random() < 0.85 else names)
        found.append(_pod(draw, template, f"w{number}-{next(numbers)}", node, at))
    return found


def _add_violations(draw: Random, template: Json, theme: Theme) -> None:
    """Add constraints that pods on few nodes probably violate."""
    labels, spec = template["metadata"]["labels"], template["spec"]
    labels.setdefault("app", "web")
    selector = {"matchLabels": {"app": labels["app"]}}
    if draw.random() < theme.likely("RemovePodsViolatingTopologySpreadConstraint", 0.05, 0.7):
        kind = draw.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
        constraint: Json = {"topologyKey": draw.choice((HOSTNAME, ZONE)), "whenUnsatisfiable": kind}
        constraint |= {"maxSkew": draw.choice((1, 1, 2)), "labelSelector": selector}
        spec.setdefault("topologySpreadConstraints", []).append(constraint)
    if draw.random() < theme.likely("RemovePodsViolatingInterPodAntiAffinity", 0.05, 0.7):
        term = {"topologyKey": draw.choice((HOSTNAME, HOSTNAME, ZONE)), "labelSelector": selector}
        affinity = spec.setdefault("affinity", {})
        affinity["podAntiAffinity"] = {_REQUIRED: [term]}
    if draw.random() < theme.likely("RemovePodsViolatingNodeAffinity", 0.05, 0.8):
        wanted: Json = {"key": ZONE, "operator": "In", "values": [draw.choice(NODE_LABELS[ZONE])]}
        preferred = {"weight": draw.randint(1, 100), "preference": {"matchExpressions": [wanted]}}
        spec.setdefault("affinity", {})["nodeAffinity"] = draw.choice(
            (
                {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}},
                {_PREFERRED: [preferred]},
            )
        )


def _owners(draw: Random, name: str) -> list[Json]:
    if draw.random() < 0.1:
        return []
    kinds = draw.sample(KINDS, 2) if draw.random() < 0.1 else [draw.choice(KINDS)]
    return [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "name": name,
            "uid": f"uid-{kind}-{name}",
            "controller": index == 0,
        }
        for index, kind in enumerate(kinds)
    ]


def _add_storage(draw: Random, pod: Json) -> None:
    kind = draw.random()
    volumes = pod["spec"].setdefault("volumes", [])
    if kind < 0.1:
        volumes.append({"name": "scratch", "emptyDir": {}})
    elif kind < 0.15:
        volumes.append({"name": "host", "hostPath": {"path": "/var"}})
    if draw.random() < 0.05:
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]


def _pod(draw: Random, template: Json, name: str, node: str, at: Moment) -> Json:
    pod = copy.deepcopy(template)
    metadata, spec = pod["metadata"], pod["spec"]
    created = at.now - draw.choice(AGES_S)
    shared = draw.random() < 0.03  # Pods of several namespaces have this name.
    metadata |= {
        "name": "shared" if shared else name,
        "uid": f"uid-{metadata['namespace']}-{name}",
        "creationTimestamp": _time(created),
    }
    spec["nodeName"] = node
    for container in spec["containers"]:
        container["image"] = draw.choice(("web:1", "web:1", "web:1", "web:2"))
        if draw.random() < 0.1:
            whole = {"cpu": "200m", "memory": "128Mi"}
            container["resources"] = {"requests": whole, "limits": whole}
    _add_priority(draw, spec)
    _add_annotations(draw, metadata)
    if draw.random() < 0.03:
        metadata["deletionTimestamp"] = _time(at.now - 5)
        metadata["deletionGracePeriodSeconds"] = 30
    pod |= {"apiVersion": "v1", "kind": "Pod", "status": _status(draw, spec, created, at.theme)}
    pod["status"]["qosClass"] = _qos(spec)
    return pod


def _add_priority(draw: Random, spec: Json) -> None:
    priority = draw.choice((None, 0, 0, 0, 0, 10, 10, 1_000, 1_000_000, 2_000_000_000))
    if priority is not None:
        spec["priority"] = priority


def _add_annotations(draw: Random, metadata: Json) -> None:
    kinds = {
        _EVICT: draw.choice(("true", "false", "")),
        _KEEP: "",
        "kubernetes.io/config.mirror": "x",
        "kubernetes.io/config.source": draw.choice(("file", "api")),
    }
    found = {key: value for key, value in kinds.items() if draw.random() < 0.03}
    if found:
        metadata["annotations"] = found


def _status(draw: Random, spec: Json, created: float, theme: Theme) -> Json:
    failed = theme.likely("RemoveFailedPods", 2, 12)
    phase = draw.choices(("Running", "Pending", "Failed", "Succeeded"), (16, 2, failed, 1))[0]
    status: Json = {"phase": phase}
    if draw.random() < 0.9:
        status["startTime"] = _time(created + 2)
    if phase == "Failed" and draw.random() < 0.5:
        status["reason"] = draw.choice(REASONS)
    status["containerStatuses"] = [_container(draw, each, phase) for each in spec["containers"]]
    if "initContainers" in spec:
        first = [_container(draw, each, phase) for each in spec["initContainers"]]
        status["initContainerStatuses"] = first
    if draw.random() < 0.05:
        status["ephemeralContainerStatuses"] = [_container(draw, {"name": "debug"}, phase)]
    status["conditions"] = [
        {
            "type": kind,
            "status": draw.choice(("True", "False")),
            "reason": draw.choice(("PodCompleted", "ContainersNotReady")),
            "lastTransitionTime": _time(created + draw.choice((5, 50))),
        }
        for kind in ("Ready", "Initialized")
        if draw.random() < 0.5
    ]
    return status


def _container(draw: Random, container: Json, phase: str) -> Json:
    state: Json = {"running": {}}
    if phase == "Pending" or draw.random() < 0.15:
        state = {"waiting": {"reason": draw.choice(STATES)}}
    elif phase in {"Failed", "Succeeded"} and draw.random() < 0.8:
        state = {"terminated": {"reason": draw.choice(ENDS), "exitCode": draw.choice((0, 1, 137))}}
    restarts = draw.choice((0, 0, 0, 1, 4, 12))
    return {"name": container["name"], "restartCount": restarts, "state": state, "ready": False}


def _qos(spec: Json) -> str:
    """Return the QoS class that the API server computes (`ComputePodQOS`)."""
    parts = [spec] if "resources" in spec else spec["containers"] + spec.get("initContainers", [])
    asked = [_cpu_and_memory(part) for part in parts]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    is_whole = all(len(limits) == 2 and requests == limits for requests, limits in asked)
    return "Guaranteed" if is_whole else "Burstable"


def _cpu_and_memory(part: Json) -> tuple[Json, Json]:
    resources = part.get("resources", {})
    requests, limits = (
        {
            key: value
            for key, value in resources.get(kind, {}).items()
            if key in {"cpu", "memory"} and value != "0"
        }
        for kind in ("requests", "limits")
    )
    return requests, limits


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
