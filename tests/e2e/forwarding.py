"""A pod on the cluster whose gRPC port leads to a reserver of ours: KWOK plays its kubelet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hack.controlplane.kwok import kwok_command
from hack.controlplane.process import Process, free_port, stop
from hack.reserver_process import wait_for

NAMESPACE = "reserver-system"
PORT = 9443
"""Where the manifests have reserver listen, on the pod's loopback interface."""

_NODE = "control-plane"
_ANNOTATION = ("kwok.x-k8s.io/node", "forwards")


@contextmanager
def reserver_pod(api: Any, kubeconfig: Path, folder: Path, grpc_address: str) -> Iterator[str]:
    """A ready pod with the labels of the manifests; yield its name.

    Args:
        api: the API server, as its administrator.
        kubeconfig: of the administrator.
        folder: for KWOK's configuration and log.
        grpc_address: where the pod's port leads.
    """
    host, _, port = grpc_address.rpartition(":")
    forward = {"ports": [PORT], "target": {"address": host, "port": int(port)}}
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
    key, value = _ANNOTATION
    command = kwok_command(kubeconfig, nodes=f"{key}={value}", port=free_port(), config=config)
    kubelet = Process(command, folder / "kwok-forwards.log")
    try:
        room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        metadata = {"name": _NODE, "annotations": {key: value}}
        api.create_node({"metadata": metadata, "status": {"allocatable": room, "capacity": room}})
        wait_for(lambda: _is_ready(api.read_node(_NODE)), "the node is ready")
        api.create_namespaced_pod(NAMESPACE, _pod())
        read = partial(api.read_namespaced_pod, _pod()["metadata"]["name"], NAMESPACE)
        wait_for(lambda: _is_ready(read()), "the pod is ready")
        yield _pod()["metadata"]["name"]
    finally:
        api.delete_namespaced_pod(_pod()["metadata"]["name"], NAMESPACE, grace_period_seconds=0)
        api.delete_node(_NODE)
        stop([kubelet])


def _pod() -> dict[str, Any]:
    port = {"name": "grpc", "containerPort": PORT}
    return {
        "metadata": {
            "name": "reserver-scheduler-0",
            "labels": {"app.kubernetes.io/name": "reserver"},
        },
        "spec": {
            "nodeName": _NODE,
            "tolerations": [{"operator": "Exists"}],
            "initContainers": [
                {"name": "reserver", "image": "none", "restartPolicy": "Always", "ports": [port]}
            ],
            "containers": [{"name": "kube-scheduler", "image": "none"}],
        },
    }


def _is_ready(found: Any) -> bool:
    """Whether a node or a pod is ready."""
    conditions = found.status.conditions or ()
    return any(each.type == "Ready" and each.status == "True" for each in conditions)
