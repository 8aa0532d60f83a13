"""Nodes and pods as Kubernetes sends them, with realistic sizes."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

NAMESPACE = "shop"
REQUESTS = {"cpu": "900m", "memory": "4Gi"}
"""Default request of a pod's first container; its second container requests 100m."""

_PROXY_REQUESTS = {"cpu": "100m"}
_NODES_PER_SUBNET = 250


def node_name(index: int) -> str:
    """Return a node's name, as long as node names of the large clouds."""
    third, fourth = divmod(index, _NODES_PER_SUBNET)
    return f"ip-10-20-{third}-{fourth}.eu-central-1.compute.internal"


def node_document(index: int) -> dict[str, Any]:
    """Return a Node as the API server sends it, with a realistic size."""
    name = node_name(index)
    capacity = {
        "cpu": "32",
        "memory": "134217728Ki",
        "ephemeral-storage": "104845292Ki",
        "hugepages-2Mi": "0",
        "pods": "110",
    }
    condition = {"status": "False", "reason": "KubeletHasEnough", "message": "m" * 48}
    return {
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-4000-8000-{index:012d}",
            "resourceVersion": str(index),
            "labels": {f"topology.kubernetes.io/label-{i}": f"value-{i}" for i in range(20)},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"aws:///eu-central-1a/i-{index:017x}"},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": f"Pressure{i}", **condition} for i in range(5)],
            "images": [
                {"names": [f"registry.example/image-{i}@sha256:{i:064x}"], "sizeBytes": 90_000_000}
                for i in range(20)
            ],
        },
    }


def pod_document(
    name: str, *, uid: str, node: str = "", requests: Mapping[str, str] = REQUESTS
) -> dict[str, Any]:
    """Return a Pod as the API server sends it: 3 KB of JSON once it runs."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": name[:-6],
        "uid": "3f0c8a52-7d5e-4f4e-9a54-8d1c5f2e6b17",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {
            "name": name,
            "generateName": name[:-5],
            "namespace": NAMESPACE,
            "uid": uid,
            "resourceVersion": "184467440",
            "creationTimestamp": "2030-01-31T10:00:00Z",
            "labels": {
                "app.kubernetes.io/name": "web",
                "app.kubernetes.io/instance": "web-production",
                "app.kubernetes.io/version": "2.41.0",
                "pod-template-hash": "5d8f7c9b9d",
            },
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": "7c" * 32},
            "ownerReferences": [owner],
        },
        "spec": _pod_spec(node, requests),
        "status": _pod_status(node, requests),
    }


def _pod_spec(node: str, requests: Mapping[str, str]) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    mount = {"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io"}
    container = {
        "name": "web",
        "image": "registry.example/shop/web:2.41.0",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(12)],
        "resources": {"requests": requests, "limits": {"memory": requests["memory"]}},
        "volumeMounts": [mount, {"name": "config", "mountPath": "/etc/web"}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "imagePullPolicy": "IfNotPresent",
    }
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return {
        "volumes": [
            {"name": "kube-api-access-x7k2p", "projected": {"sources": []}},
            {"name": "config", "configMap": {"name": "web-config", "defaultMode": 420}},
        ],
        "initContainers": [{"name": "migrate", "image": "registry.example/shop/web:2.41.0"}],
        "containers": [container, {"name": "proxy", "resources": {"requests": _PROXY_REQUESTS}}],
        "restartPolicy": "Always",
        "serviceAccountName": "web",
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", **toleration}
            for key in ("not-ready", "unreachable")
        ],
        "priority": 0,
        **({"nodeName": node} if node else {}),
    }


def _pod_status(node: str, requests: Mapping[str, str]) -> dict[str, Any]:
    if not node:
        message = "0/5000 nodes are available: 5000 Insufficient cpu."
        waits = {"type": "PodScheduled", "status": "False", "message": message}
        return {"phase": "Pending", "conditions": [waits], "qosClass": "Burstable"}
    moment = "2030-01-31T10:00:09Z"
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": moment} for kind in types
        ],
        "hostIP": "10.20.3.4",
        "podIP": "10.128.7.9",
        "startTime": moment,
        "containerStatuses": [
            _container_status("web", requests, moment),
            _container_status("proxy", _PROXY_REQUESTS, moment),
        ],
        "qosClass": "Burstable",
    }


def _container_status(name: str, requests: Mapping[str, str], moment: str) -> dict[str, Any]:
    digest = f"{name.encode().hex():0>64}"
    return {
        "name": name,
        "image": f"registry.example/shop/{name}:2.41.0",
        "imageID": f"registry.example/shop/{name}@sha256:{digest}",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": moment}},
        "containerID": f"containerd://{digest}",
        "allocatedResources": requests,  # The kubelet reports both since in-place resize.
        "resources": {"requests": requests},
    }


def running_pod(index: int, nodes: int) -> dict[str, Any]:
    """Return a running pod; the pods are spread evenly over `nodes` nodes."""
    uid = f"11111111-0000-4000-8000-{index:012d}"
    return pod_document(f"web-5d8f7c9b9d-{index:07d}", uid=uid, node=node_name(index % nodes))


def running_pods(count: int, nodes: int) -> Iterator[bytes]:
    """Yield `count` running pods as JSON, faster than by encoding each document."""
    like = encode(running_pod(0, nodes))
    old = ("-" + "0" * 7, "-" + "0" * 12, node_name(0))
    in_name, in_uid, node = (text.encode() for text in old)
    for index in range(count):
        yield (
            like.replace(in_name, b"-%07d" % index, 1)
            .replace(in_uid, b"-%012d" % index, 1)
            .replace(node, node_name(index % nodes).encode(), 1)
        )


def new_pod(name: str, requests: Mapping[str, str] = REQUESTS) -> dict[str, Any]:
    """Return a pending pod, as kube-scheduler sends it."""
    return pod_document(name, uid=f"22222222-0000-4000-8000-{name:0>12}", requests=requests)


def encode(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON bytes."""
    return msgspec.json.encode(document)
