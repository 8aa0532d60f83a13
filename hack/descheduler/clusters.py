"""Random clusters on which strategies find something to do: workloads that nobody placed well."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from hack.descheduler.workloads import Moment, Theme, workload
from hack.differential.draw import (
    HOSTNAME,
    NAMESPACE_LABELS,
    NAMESPACES,
    NODE_LABELS,
    POD_LABELS,
    Json,
    Random,
    some_of,
)

CLASSES = {"low": 10, "high": 1_000_000}
STORAGE_CLASSES = ("fast", "slow")


def cluster(draw: Random, now: float, strategies: Iterable[str] = ()) -> list[Json]:
    """Return the objects of a cluster, as the API server has them at a moment.

    Args:
        draw: chance.
        now: the moment, in unix seconds.
        strategies: they find more to do than others.
    """
    theme = Theme(frozenset(strategies))
    names = [f"n{number}" for number in range(draw.choice((2, 3, 4, 5, 6, 8, 10)))]
    numbers = count()
    objects = [_node(draw, name, theme) for name in names]
    objects += [_namespace(draw, name) for name in (*NAMESPACES, "kube-system")]
    objects += [priority_class(name, value) for name, value in CLASSES.items()]
    objects += [_claim(draw, namespace) for namespace in NAMESPACES]
    for _ in range(draw.choice((2, 3, 4, 6))):
        objects += workload(draw, names, numbers, Moment(now, theme))
    if draw.random() < 0.3:
        objects.append(_budget(draw))
    return list({_key(each): each for each in objects}.values())


def _key(each: Json) -> tuple[str, str, str]:
    metadata = each["metadata"]
    return each["kind"], metadata.get("namespace", ""), metadata["name"]


def _node(draw: Random, name: str, theme: Theme) -> Json:
    labels = {HOSTNAME: name, **some_of(draw, NODE_LABELS, 0.8)}
    spec: Json = {}
    if draw.random() < theme.likely("RemovePodsViolatingNodeTaints", 0.2, 0.6):
        effect = draw.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute"))
        taint = {"key": draw.choice(("dedicated", "gpu")), "effect": effect}
        spec["taints"] = [taint | {"value": draw.choice(("web", "db"))}]
    if draw.random() < 0.1:
        spec["unschedulable"] = True
    room = {
        "cpu": draw.choice(("2", "4", "8")),
        "memory": draw.choice(("4Gi", "8Gi")),
        "pods": draw.choice(("8", "20", "110")),
        "ephemeral-storage": "20Gi",
    }
    if draw.random() < 0.3:
        room["example.com/gpu"] = "4"
    ready = draw.choices(("True", "False", "Unknown", None), (30, 1, 1, 1))[0]
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": room, "capacity": room, "conditions": conditions},
    }


def _namespace(draw: Random, name: str) -> Json:
    metadata = {"name": name, "labels": some_of(draw, NAMESPACE_LABELS)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def priority_class(name: str, value: int) -> Json:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _claim(draw: Random, namespace: str) -> Json:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if draw.random() < 0.9:
        spec["storageClassName"] = draw.choice(STORAGE_CLASSES)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": namespace},
        "spec": spec,
    }


def _budget(draw: Random) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget", "namespace": draw.choice(NAMESPACES)},
        "spec": {"selector": {"matchLabels": {"app": draw.choice(POD_LABELS["app"])}}},
        "status": {"disruptionsAllowed": 1},
    }
