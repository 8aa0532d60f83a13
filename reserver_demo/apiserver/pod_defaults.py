"""The fields that the API server fills in when a pod is created.

Defaults: pkg/apis/core/v1/defaults.go. Admission: the plugins Priority and
DefaultTolerationSeconds, which are on in every cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reserver_demo.apiserver.status import Json, forbidden

_CONTAINER_LISTS = ("initContainers", "containers")
_EVICTION_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS = 300


def set_defaults(pod: Json) -> None:
    """Fill in the defaults of absent fields."""
    spec = pod["spec"]
    _set_spec_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in _containers(spec):
        _requests_from_limits(container["resources"])


def set_template_defaults(template: Json) -> None:
    """Fill in the defaults of absent fields in a pod template."""
    template.setdefault("metadata", {})
    _set_spec_defaults(template["spec"])


def _set_spec_defaults(spec: Json) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for container in _containers(spec):
        _container_defaults(container)


def _containers(spec: Json) -> Iterable[Json]:
    return (container for name in _CONTAINER_LISTS for container in spec.get(name, ()))


def _container_defaults(container: Json) -> None:
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    latest = tag in {"", "latest"} and "@" not in image
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")


def _requests_from_limits(resources: Json) -> None:
    limits: dict[str, Any] = resources.get("limits", {})
    if missing := {k: v for k, v in limits.items() if k not in resources.get("requests", {})}:
        resources["requests"] = resources.get("requests", {}) | missing


def initial_status(pod: Json) -> Json:
    """Return the status of a new pod."""
    status: Json = {"phase": "Pending", "qosClass": _qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return status


def _qos_class(spec: Json) -> str:
    """Compute the QoS class (pkg/apis/core/helper/qos/qos.go)."""
    counted = ("cpu", "memory")
    guaranteed, any_named = True, False
    for container in _containers(spec):
        resources = container["resources"]
        requests = {k: v for k, v in resources.get("requests", {}).items() if k in counted}
        limits = {k: v for k, v in resources.get("limits", {}).items() if k in counted}
        any_named = any_named or bool(requests or limits)
        guaranteed = guaranteed and len(limits) == len(counted) and requests == limits
    if not any_named:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def admit(pod: Json, priority_classes: Iterable[Json]) -> None:
    """Resolve the priority class and add the default tolerations.

    Raises:
        StatusError: 403 if the class is absent, or the pod has another priority than its class.
    """
    _admit_priority(pod, {c["metadata"]["name"]: c for c in priority_classes})
    tolerations = pod["spec"].get("tolerations", [])
    for taint in _EVICTION_TAINTS:
        if not any(_tolerates_eviction(toleration, taint) for toleration in tolerations):
            tolerations.append(
                {
                    "key": taint,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_SECONDS,
                }
            )
    pod["spec"]["tolerations"] = tolerations


def _tolerates_eviction(toleration: Json, taint: str) -> bool:
    return toleration.get("key", taint) == taint and toleration.get("effect", "NoExecute") in {
        "NoExecute",
        "",
    }


def _admit_priority(pod: Json, classes: dict[str, Json]) -> None:
    spec, name = pod["spec"], pod["metadata"]["name"]
    if class_name := spec.get("priorityClassName"):
        chosen = classes.get(class_name)
        if chosen is None:
            problem = f"no PriorityClass with name {class_name} was found"
            raise forbidden("pods", name, problem)
    else:
        defaults = [c for c in classes.values() if c.get("globalDefault")]
        chosen = min(defaults, key=lambda c: int(c["value"]), default=None)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    priority = chosen["value"] if chosen else 0
    if spec.get("priority", priority) != priority:
        problem = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise forbidden("pods", name, problem)
    spec["priority"] = priority
    policy = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("preemptionPolicy", policy)
