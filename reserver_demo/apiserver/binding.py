"""Binding pods to nodes: pkg/registry/core/pod/storage/storage.go (`BindingREST`)."""

from __future__ import annotations

from http import HTTPStatus

from reserver_demo.apiserver.registry import Registry, check_preconditions
from reserver_demo.apiserver.resources import POD_RESOURCE
from reserver_demo.apiserver.status import Json, StatusError, bad_request, conflict, required
from reserver_demo.apiserver.store import Key, Stored
from reserver_demo.clock import rfc3339


def bind(registry: Registry, key: Key, binding: Json, *, dry_run: bool = False) -> Stored:
    """Assign a pod to a node; the binding's annotations and labels go into the same write.

    Raises:
        StatusError: 400, 404, or 409 if the pod is bound, terminating, gated or has another UID.
    """
    metadata = binding.get("metadata", {})
    if metadata.get("name") != key.name:
        raise bad_request("name in URL does not match name in Binding object")
    node = _target(binding)
    stored = registry.get(POD_RESOURCE, key)
    check_preconditions(POD_RESOURCE, stored, metadata.get("uid"), metadata.get("resourceVersion"))
    if problem := _why_not(stored.content):
        raise conflict("pods/binding", key.name, problem)
    pod = stored.copy()
    pod["spec"]["nodeName"] = node
    pod["status"].pop("nominatedNodeName", None)
    for field in ("annotations", "labels"):
        if merged := pod["metadata"].get(field, {}) | metadata.get(field, {}):
            pod["metadata"][field] = merged
    set_condition(registry, pod, {"type": "PodScheduled", "status": "True"})
    return registry.write(POD_RESOURCE, pod, dry_run=dry_run)


def _target(binding: Json) -> str:
    """Return the node of a binding.

    Raises:
        StatusError: 500; the real server does not translate errors of `ValidatePodBinding`.
    """
    target = binding.get("target", {})
    problems = []
    if (kind := target.get("kind", "Node")) != "Node":
        supported = 'supported values: "Node", "<empty>"'
        problems.append(f'target.kind: Unsupported value: "{kind}": {supported}')
    name: str = target.get("name", "")
    if not name:
        problems.append(str(required("target.name")))
    if problems:
        message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)
    return name


def _why_not(pod: Json) -> str:
    name = pod["metadata"]["name"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def set_condition(registry: Registry, pod: Json, condition: Json) -> None:
    """Add a condition, or replace the condition of its type (`UpdatePodCondition`)."""
    conditions = pod["status"].setdefault("conditions", [])
    now = rfc3339(registry.clock.now())
    fresh = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, old in enumerate(conditions):
        if old["type"] == condition["type"]:
            if old["status"] == condition["status"]:
                fresh["lastTransitionTime"] = old.get("lastTransitionTime", now)
            conditions[index] = fresh
            return
    conditions.append(fresh)
