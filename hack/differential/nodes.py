"""Random nodes and namespaces."""

from __future__ import annotations

from hack.differential.draw import (
    CONDITION_TAINTS,
    EFFECTS,
    HOSTNAME,
    NAMESPACE_LABELS,
    NODE_LABELS,
    TAINT_KEYS,
    TAINT_VALUES,
    Json,
    Random,
    some_of,
)


def namespace(draw: Random, name: str) -> Json:
    """Return a namespace with labels."""
    labels = dict.fromkeys(NAMESPACE_LABELS) | some_of(draw, NAMESPACE_LABELS)
    return {"metadata": {"name": name, "labels": labels}}


def node(draw: Random, name: str) -> Json:
    """Return a node, with the taints of the node lifecycle controller for its conditions."""
    labels = some_of(draw, NODE_LABELS)
    if draw.random() < 0.9:
        labels[HOSTNAME] = name
    conditions, taints = _conditions(draw)
    taints += _taints(draw)
    spec: Json = {"taints": list({(t["key"], t["effect"]): t for t in taints}.values())}
    if draw.random() < 0.08:
        spec["unschedulable"] = True
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"conditions": conditions, "allocatable": _room(draw), "capacity": _room(draw)},
    }


def _room(draw: Random) -> Json:
    room = {
        "cpu": draw.choice(("500m", "4", "8", "16")),
        "memory": draw.choice(("1Gi", "8Gi", "32Gi")),
        "ephemeral-storage": draw.choice(("1Gi", "20Gi")),
        "pods": draw.choice(("1", "4", "30", "110")),
    }
    if draw.random() < 0.3:
        room["example.com/gpu"] = draw.choice(("0", "1", "4"))
    if draw.random() < 0.2:
        room["hugepages-2Mi"] = "64Mi"
    return room


def _conditions(draw: Random) -> tuple[list[Json], list[Json]]:
    """Return conditions and the taints that they bring (node_lifecycle_controller.go)."""
    conditions, taints = [], []
    for kind, key in CONDITION_TAINTS.items():
        is_true = draw.random() < 0.02
        conditions.append(_condition(kind, "True" if is_true else "False"))
        if is_true:
            taints.append({"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"})
    ready = draw.choices(("True", "False", "Unknown"), (24, 1, 1))[0]
    conditions.append(_condition("Ready", ready))
    if ready != "True":
        key = "not-ready" if ready == "False" else "unreachable"
        taints += [
            {"key": f"node.kubernetes.io/{key}", "effect": effect}
            for effect in ("NoSchedule", "NoExecute")
        ]
    return conditions, taints


def _condition(kind: str, status: str) -> Json:
    return {"type": kind, "status": status, "reason": "Drawn"}


def _taints(draw: Random) -> list[Json]:
    if draw.random() < 0.7:
        return []
    return [
        {
            "key": draw.choice(TAINT_KEYS),
            "value": draw.choice(TAINT_VALUES),
            "effect": draw.choice(EFFECTS),
        }
        for _ in range(draw.randint(1, 2))
    ]
