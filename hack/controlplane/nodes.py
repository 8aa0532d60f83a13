"""Nodes without machines, for any cluster: KWOK simulates their kubelets."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hack.bed.api import Api
from hack.controlplane.kwok import FAKE

READY_SECONDS = 60.0
LOOK_EVERY = 0.2  # seconds; each check lists all nodes


def create_nodes(  # noqa: PLR0913 (all but two have a default that most callers want)
    kubeconfig: Path,
    count: int,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    extended: Mapping[str, str] | None = None,
    prefix: str = "worker",
    labels: Mapping[str, str] | None = None,
) -> list[str]:
    """Create nodes PREFIX-1 to PREFIX-count and return their names once they are schedulable.

    kwok must run for the cluster, by `ControlPlane` or by `hack.controlplane.kwok`.

    Args:
        kubeconfig: kubeconfig of a user with a token who may create nodes.
        count: number of nodes.
        cpu: allocatable CPU, as a Kubernetes quantity.
        memory: allocatable memory, as a Kubernetes quantity.
        pods: allocatable pods.
        extended: further allocatable resources, such as `{"nvidia.com/gpu": "4"}`.
        prefix: prefix of the names.
        labels: labels in addition to those of every node (hostname, os, arch).

    Raises:
        ApiFault: the API server refused a node.
        TimeoutError: some nodes are not ready after a minute.
    """
    names = [f"{prefix}-{number}" for number in range(1, count + 1)]
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extended or {})}
    with closing(Api(kubeconfig)) as api:
        api.create_all("/api/v1/nodes", (manifest(name, room, labels or {}) for name in names))
        _wait_schedulable(api, names)
    return names


def manifest(name: str, room: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a node that KWOK simulates.

    Args:
        name: name of the node.
        room: allocatable amounts, as Kubernetes quantities.
        labels: labels in addition to those of every node (hostname, os, arch).
    """
    key, _, value = FAKE.partition("=")
    # The labels of a kubelet, old names included: the controller manager would add them.
    platform = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    own = {"kubernetes.io/hostname": name, **platform}
    own |= {f"beta.{key}": value for key, value in platform.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {key: value},
            "labels": {**own, **labels},
        },
        "status": {"allocatable": room, "capacity": room},
    }


def _wait_schedulable(api: Api, names: Sequence[str]) -> None:
    """Wait until the controller manager has removed the not-ready taint from Ready nodes."""
    deadline = time.monotonic() + READY_SECONDS
    waiting = set(names)
    while True:
        # From the API server's cache, so that repeated reads are cheap.
        nodes = api.get("/api/v1/nodes?resourceVersion=0")
        waiting -= {node["metadata"]["name"] for node in nodes["items"] if is_schedulable(node)}
        if not waiting:
            return
        if time.monotonic() > deadline:
            message = f"nodes not ready after {READY_SECONDS:g} s: {sorted(waiting)[:5]}"
            raise TimeoutError(message)
        time.sleep(LOOK_EVERY)


def is_schedulable(node: Mapping[str, Any]) -> bool:
    """Return whether pods can land on a node."""
    conditions = node["status"].get("conditions", [])
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
    taints = node["spec"].get("taints", [])
    return ready and not any(taint["key"].endswith("/not-ready") for taint in taints)
