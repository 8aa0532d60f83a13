"""A pod as the API server writes it."""

import copy
import json
from typing import Any

from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject

POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "web-0",
        "generateName": "web-",
        "namespace": "shop",
        "uid": "9c1f5e0a-5d0e-4a4c-8d3b-2f6a1a1b2c3d",
        "resourceVersion": "12345",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "deletionTimestamp": None,
        "labels": {"app": "web"},
        "annotations": {"kubectl.kubernetes.io/restartedAt": "x", "reserver.io/claims": '["a@1"]'},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u"}
        ],
        "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {"f:labels": {}}}}],
    },
    "spec": {
        "volumes": [{"name": "token", "projected": {"sources": None, "defaultMode": 420}}],
        "initContainers": [
            {"name": "mesh", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
            {"name": "setup", "image": "x", "resources": {}},
        ],
        "containers": [
            {
                "name": "web",
                "image": "web:1",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"},
                    "requests": {"cpu": "250m", "memory": "512Mi", "nvidia.com/gpu": "1"},
                },
                "terminationMessagePolicy": "File",
            },
            {"name": "log", "resources": None},
        ],
        "overhead": {"cpu": "10m"},
        "nodeName": "worker-1",
        "priority": 1000,
        "tolerations": [{"key": "x", "operator": "Exists", "tolerationSeconds": 300}],
        "affinity": None,
        "topologySpreadConstraints": None,
        "ephemeralContainers": None,
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastProbeTime": None, "reason": "AllGood"}
        ],
        "containerStatuses": [
            {
                "name": "web",
                "allocatedResources": {"cpu": "300m", "memory": "512Mi", "nvidia.com/gpu": "1"},
                "resources": {
                    "requests": {"cpu": "250m", "memory": "512Mi", "nvidia.com/gpu": "1"}
                },
                "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
            }
        ],
        "initContainerStatuses": None,
        "qosClass": "Burstable",
    },
}


def pod(**changes: Any) -> PodObject:
    """Decode the pod above, changed at ``a__b`` for ``{"a": {"b": ...}}``."""
    return decode(PodObject, changed(POD, changes))


def changed(document: dict[str, Any], changes: dict[str, Any]) -> bytes:
    document = copy.deepcopy(document)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place[parent]
        place[last] = value
    return json.dumps(document).encode()
