"""Small clusters to rebalance, as the API server would show them."""

import json
from collections import Counter
from typing import Any

from reserver.rebalance.arguments.evictor import DefaultEvictor
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.dump import read_dump
from reserver.rebalance.plan import Plan
from reserver.rebalance.policy import Arguments, DeschedulerPolicy, EvictionLimits, Profile
from reserver.rebalance.upstream import plan

Objects = list[dict[str, Any]]

NOW = 1_896_084_000.0
"""2030-01-31T10:00:00Z"""

REPLICA_SET = [{"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}]


def node(name: str, **parts: Any) -> dict[str, Any]:
    """Return a node of 4 CPUs, 8 GiB and 10 pods; `parts` are labels, taints, cordon, offer."""
    offer = {"cpu": "4", "memory": "8Gi", "pods": "10", **parts.get("offer", {})}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": parts.get("labels", {})},
        "spec": {
            "taints": parts.get("taints", []),
            "unschedulable": parts.get("cordoned", False),
        },
        "status": {
            "allocatable": parts.get("allocatable", offer),
            "capacity": offer,
            "conditions": parts.get("conditions", []),
        },
    }


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    """Return a taint."""
    return {"key": key, "value": value, "effect": effect}


def pod(name: str, on: str = "", **parts: Any) -> dict[str, Any]:
    """Return a running pod of a ReplicaSet; each part adds to, or replaces, a part of the object.

    `metadata`, `spec` and `status` are merged; `requests` and `image` are parts of its container.
    """
    container = {
        "name": "c",
        "image": parts.get("image", "web:1"),
        "resources": {"requests": parts.get("requests", {})},
    }
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": parts.get("namespace", "shop"),
            "uid": parts.get("uid", f"{parts.get('namespace', 'shop')}/{name}"),
            "creationTimestamp": "2030-01-31T09:00:00Z",
            "ownerReferences": REPLICA_SET,
            **parts.get("metadata", {}),
        },
        "spec": {"nodeName": on, "containers": [container], **parts.get("spec", {})},
        "status": {"phase": "Running", **parts.get("status", {})},
    }


def pods(count: int, on: str, prefix: str = "p", **parts: Any) -> Objects:
    """Return so many pods on a node, numbered."""
    return [pod(f"{prefix}{index}", on, **parts) for index in range(count)]


def cluster_of(*objects: dict[str, Any]) -> ClusterState:
    """Return the cluster in a dump of some objects."""
    read = read_dump(json.dumps({"kind": "List", "items": objects}).encode())
    assert not read.broken, read.broken
    return read.inventory


def outcome(
    objects: list[dict[str, Any]],
    *plugins: Arguments,
    evictor: DefaultEvictor | None = None,
    limits: EvictionLimits | None = None,
    **policy: Any,
) -> Plan:
    """Return the plan of one profile at `NOW`; all plugins are deschedule plugins."""
    profile = Profile(name="test", evictor=evictor or DefaultEvictor(), deschedule=plugins)
    limited = DeschedulerPolicy(profiles=(profile,), limits=limits or EvictionLimits(), **policy)
    return plan(cluster_of(*objects), limited, NOW)


def evicted(objects: list[dict[str, Any]], *plugins: Arguments, **options: Any) -> list[str]:
    """Return the names of the pods that a cycle evicts, in order; no plugin may fail."""
    done = outcome(objects, *plugins, **options)
    assert not done.notes, done.notes
    return [move.pod.name for move in done.moves]


def counted(names: list[str]) -> Counter[str]:
    """Return the number of names with each first letter."""
    return Counter(name[0] for name in names)
