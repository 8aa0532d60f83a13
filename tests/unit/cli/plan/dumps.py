"""Dumps of a cluster, and `reserver rebalance plan` on them."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from reserver.cli.main import app

TAINT = {"key": "old", "effect": "NoSchedule"}


def node_of(name: str, *taints: dict[str, str], cpu: str = "4") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod_of(name: str, node: str = "", cpu: str = "1") -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-uid"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": f"uid-{name}",
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def dump_of(*objects: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


TAINTED = dump_of(
    node_of("a", TAINT), node_of("b", cpu="2"), *(pod_of(f"p{n}", "a") for n in range(3))
)


def plan(*arguments: str, dump: str = TAINTED) -> Result:
    return CliRunner().invoke(app, ["rebalance", "plan", "-f", "-", *arguments], input=dump)
