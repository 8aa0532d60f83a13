"""kube-scheduler's own filters, as far as they are played here, in the words that it uses."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.sim.scheduler.objects import NodeView, PodView

_UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


def why_not(view: PodView, node: NodeView, used: Mapping[str, int]) -> tuple[str, ...]:
    """Return the reasons that keep a pod from a node: those of the first filter that has any.

    In the order of the default profile: NodeUnschedulable, NodeName, NodeAffinity,
    NodeResourcesFit.
    """
    if node.cordoned and not _tolerates_cordon(view):
        return ("node(s) were unschedulable",)
    wanted = view.content["spec"].get("nodeName", "")
    if wanted and wanted != node.node.name:
        return ("node(s) didn't match the requested node name",)
    if any(node.labels.get(key) != value for key, value in view.selector.items()):
        return ("node(s) didn't match Pod's node affinity/selector",)
    return _insufficient(view.pod.requests, node.node.allocatable, used)


def _tolerates_cordon(view: PodView) -> bool:
    return any(
        toleration.get("key", _UNSCHEDULABLE_TAINT) == _UNSCHEDULABLE_TAINT
        and toleration.get("operator", "Equal") in {"Exists", "Equal"}
        and toleration.get("effect", "NoSchedule") == "NoSchedule"
        and not toleration.get("value")
        for toleration in view.content["spec"].get("tolerations", ())
    )


def _insufficient(
    requests: Mapping[str, int], allocatable: Mapping[str, int], used: Mapping[str, int]
) -> tuple[str, ...]:
    """Name each resource of which the node has too little left (noderesources/fit.go)."""
    short = [
        name
        for name, amount in requests.items()
        if amount and amount > allocatable.get(name, 0) - used.get(name, 0)
    ]
    return tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in short)


def score(view: PodView, node: NodeView, used: Mapping[str, int]) -> int:
    """Score a node from 0 to 100: the less of its cpu and memory is taken, the higher.

    noderesources/least_allocated.go, both resources weighing the same.
    """
    total = 0
    for name in ("cpu", "memory"):
        capacity = node.node.allocatable.get(name, 0)
        left = capacity - used.get(name, 0) - view.pod.requests.get(name, 0)
        total += left * 100 // capacity if capacity and left > 0 else 0
    return total // 2
