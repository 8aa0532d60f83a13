"""Random words that the objects of a cluster share, so that they have to do with each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]
Random = random.Random

NAMESPACES = ("red", "green", "blue")
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
TOPOLOGY_KEYS = (ZONE, HOSTNAME, "rack", "row")
NODE_LABELS: dict[str, Sequence[str]] = {
    ZONE: ("a", "b", "c"),
    REGION: ("north", "south"),
    "rack": ("r1", "r2", "r3", "r4"),
    "row": ("1", "2"),
    "disk": ("ssd", "hdd", ""),
    "cores": ("4", "8", "16", "many", "0x10"),
}
POD_LABELS: dict[str, Sequence[str]] = {
    "app": ("web", "db", "cache"),
    "tier": ("front", "back"),
    "version": ("1", "2", ""),
}
NAMESPACE_LABELS: dict[str, Sequence[str]] = {"team": ("x", "y"), "stage": ("dev", "prod")}
CONDITION_TAINTS = {
    "MemoryPressure": "memory-pressure",
    "DiskPressure": "disk-pressure",
    "PIDPressure": "pid-pressure",
    "NetworkUnavailable": "network-unavailable",
}
TAINT_KEYS = ("dedicated", "gpu", *(f"node.kubernetes.io/{t}" for t in CONDITION_TAINTS.values()))
TAINT_VALUES = ("", "web", "db", "7")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def some_of(draw: Random, labels: dict[str, Sequence[str]], likely: float = 0.75) -> dict[str, str]:
    """Return some of the labels, each with one of its values."""
    return {key: draw.choice(values) for key, values in labels.items() if draw.random() < likely}


def some(draw: Random, most: int, make: Callable[[Random], Json]) -> list[Json]:
    """Return from one to `most` of what `make` makes."""
    return [make(draw) for _ in range(draw.randint(1, most))]


def label_selector(draw: Random, labels: dict[str, Sequence[str]]) -> Json | None:
    """Return a LabelSelector: seldom none or an empty one."""
    kind = draw.random()
    if kind < 0.05:
        return None
    if kind < 0.1:
        return {}
    selector: Json = {}
    if draw.random() < 0.6:
        key = draw.choice(list(labels))
        selector["matchLabels"] = {key: draw.choice(labels[key])}
    if draw.random() < 0.6 or not selector:
        operators = ("In", "NotIn", "Exists", "DoesNotExist")
        selector["matchExpressions"] = [expression(draw, labels, operators)]
    return selector


def expression(draw: Random, labels: dict[str, Sequence[str]], operators: Sequence[str]) -> Json:
    """Return one term of a selector."""
    key, operator = draw.choice([*labels, "absent"]), draw.choice(operators)
    found: Json = {"key": key, "operator": operator}
    values = labels.get(key, ("none",))
    if operator in {"In", "NotIn"}:
        found["values"] = sorted({draw.choice(values) for _ in range(draw.randint(1, 2))})
    elif operator in {"Gt", "Lt"}:
        found["values"] = [draw.choice(("3", "8", "12", "1"))]
    return found
