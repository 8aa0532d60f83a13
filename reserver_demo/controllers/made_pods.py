"""The pods that controllers create from templates."""

from __future__ import annotations

import copy

from reserver_demo.apiserver.status import Json
from reserver_demo.controllers.effects import Create

_FINISHED = ("Succeeded", "Failed")


def owner_reference(kind: str, api_version: str, owner: Json) -> Json:
    """Return the owner reference to a controller."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_uid(content: Json) -> str:
    """Return the UID of an object's controller; empty without one."""
    for each in content["metadata"].get("ownerReferences", ()):
        if each.get("controller"):
            return str(each["uid"])
    return ""


def new_pod(reference: Json, owner: Json, prefix: str = "") -> Create:
    """Return a pod to create from an owner's template; `prefix` is the start of its name."""
    template = copy.deepcopy(owner["spec"]["template"])
    metadata = {key: template["metadata"].get(key, {}) for key in ("labels", "annotations")}
    metadata |= {
        "generateName": prefix or f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [reference],
    }
    return Create("pods", {"metadata": metadata, "spec": template["spec"]})


def is_terminating(pod: Json) -> bool:
    """Return whether a pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_active(pod: Json) -> bool:
    """Return whether a pod is active: neither finished nor terminating."""
    return pod["status"].get("phase") not in _FINISHED and not is_terminating(pod)


def is_ready(pod: Json) -> bool:
    """Return whether a pod is ready."""
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
