"""A pod on the cluster whose gRPC port leads to a reserver of ours: KWOK plays its kubelet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from hack.controlplane.kwok import kwok_command
from hack.controlplane.process import HeldPort, Process, stop
from hack.reserver_process import wait_for

PORT = 9443
"""The port of Reserver's gRPC API in the manifests, on the pod's loopback interface."""

_NAME = "reserver-0"
_ANNOTATION = "kwok.x-k8s.io/node"


@contextmanager
def reserver_pod(
    api: Any, kubeconfig: Path, folder: Path, port: int, namespace: str = "reserver-system"
) -> Iterator[str]:
    """A ready pod with the labels of the manifests; yield its name.

    Args:
        api: the API server, as its administrator.
        kubeconfig: of the administrator.
        folder: for KWOK's configuration and log.
        port: on loopback, where the pod's port leads.
        namespace: of the pod.
    """
    node = f"{namespace}-node"
    forward = {"ports": [PORT], "target": {"address": "127.0.0.1", "port": port}}
    config = folder / "forward.yaml"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterPortForward",
                "metadata": {"name": "grpc"},
                "spec": {"forwards": [forward]},
            }
        )
    )
    nodes = f"{_ANNOTATION}={node}"
    held = HeldPort()
    command = kwok_command(kubeconfig, nodes=nodes, port=held.number, config=config)
    kubelet = Process(command, folder / "kwok-forwards.log")
    try:
        room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        metadata = {"name": node, "annotations": {_ANNOTATION: node}}
        api.create_node({"metadata": metadata, "status": {"allocatable": room, "capacity": room}})
        wait_for(lambda: _is_ready(api.read_node(node)), "the node is ready")
        api.create_namespaced_pod(namespace, _pod(node))
        touch = partial(_touch, api, namespace, count())
        wait_for(lambda: _is_ready(touch()), "the pod is ready")
        yield _NAME
    finally:
        api.delete_namespaced_pod(_NAME, namespace, grace_period_seconds=0)
        api.delete_node(node)
        stop([kubelet])


def _pod(node: str) -> dict[str, Any]:
    port = {"name": "grpc", "containerPort": PORT}
    return {
        "metadata": {
            "name": _NAME,
            "labels": {"app.kubernetes.io/name": "reserver"},
        },
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "initContainers": [
                {"name": "reserver", "image": "none", "restartPolicy": "Always", "ports": [port]}
            ],
            "containers": [{"name": "kube-scheduler", "image": "none"}],
        },
    }


def _touch(api: Any, namespace: str, numbers: Iterator[int]) -> Any:
    """Change an annotation of the pod, and return the pod.

    KWOK passes over a pod that it sees before the lease of the node, which it has written already,
    and looks at the pod again only once the pod changes (`readOnly` in its pod_controller.go).
    """
    annotations = {"touched": str(next(numbers))}
    return api.patch_namespaced_pod(_NAME, namespace, {"metadata": {"annotations": annotations}})


def _is_ready(found: Any) -> bool:
    """Whether a node or a pod is ready."""
    conditions = found.status.conditions or ()
    return any(each.type == "Ready" and each.status == "True" for each in conditions)
