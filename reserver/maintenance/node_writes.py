"""Writes the annotation, the cordon and the conditions of nodes under maintenance."""

from __future__ import annotations

import json
from typing import Any

from reserver.cluster.node import LIFECYCLE
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.nodes import MAINTENANCE_ANNOTATION
from reserver.k8s.objects.times import show_moment
from reserver.maintenance.decide import NodeGoal, NodeLifecycle
from reserver.maintenance.model import REASON, ObservedNode, show_uses

Conditions = list[dict[str, Any]]


def is_due(goal: NodeGoal, seen: ObservedNode) -> bool:
    """Return whether a node differs from its goal."""
    return _is_use_due(goal, seen) or _is_lifecycle_due(goal, seen)


def _is_use_due(goal: NodeGoal, seen: ObservedNode) -> bool:
    is_cordon_due = goal.cordon is not None and goal.cordon != seen.is_cordoned
    return is_cordon_due or goal.uses != seen.uses


def _is_lifecycle_due(goal: NodeGoal, seen: ObservedNode) -> bool:
    for kind in LIFECYCLE:
        found = seen.conditions.get(kind)
        is_ours = found is not None and found.reason == REASON
        is_free = found is None or found.status != "True" or is_ours
        if is_free and (kind in goal.lifecycle.kinds) != is_ours:
            return True
    return False


async def write_node(
    client: ApiClient, seen: ObservedNode, goal: NodeGoal, annotation: str, now: float
) -> bool:
    """Write the goal of a node; return False if another client has changed the observed fields.

    The annotation and the cordon are one write, so neither is ever seen alone. The conditions
    follow: after a crash in between, the new leader sees that they are missing.

    Args:
        seen: the observed node of the decision.
        goal: the desired state.
        annotation: the observed maintenance annotation.
        now: unix seconds.

    Raises:
        ApiError: the API server refuses, or does not answer.
    """
    path = f"/api/v1/nodes/{seen.name}"
    node = json.loads(await client.get(path))
    metadata, spec = node["metadata"], node.get("spec") or {}
    found = (metadata.get("annotations") or {}).get(MAINTENANCE_ANNOTATION, "")
    if found != annotation or bool(spec.get("unschedulable")) != seen.is_cordoned:
        return False
    if _is_use_due(goal, seen):
        body: dict[str, Any] = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {MAINTENANCE_ANNOTATION: show_uses(goal.uses) or None},
            }
        }
        if goal.cordon is not None:
            body["spec"] = {"unschedulable": goal.cordon or None}
        node = json.loads(await client.patch(path, body))
    before: Conditions = (node.get("status") or {}).get("conditions") or []
    after = conditions(before, goal.lifecycle, now)
    if after != before:
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        body = {"metadata": version, "status": {"conditions": after}}
        await client.patch(f"{path}/status", body)
    return True


def conditions(before: Conditions, lifecycle: NodeLifecycle, now: float) -> Conditions:
    """Return a node's conditions with the desired maintenance conditions.

    A condition of another controller is replaced only where the same type is desired, and its
    status is not True.
    """
    kept = [each for each in before if not _is_ours(each)]
    known = {each.get("type"): each for each in before if _is_ours(each)}
    theirs = {each.get("type") for each in kept if each.get("status") == "True"}
    kinds = [kind for kind in LIFECYCLE if kind in lifecycle.kinds and kind not in theirs]
    kept = [each for each in kept if each.get("type") not in kinds]
    for kind in kinds:
        ours = {"type": kind, "status": "True", "reason": REASON, "message": lifecycle.message}
        since = known.get(kind, {}).get("lastTransitionTime") or show_moment(now)
        kept.append({**known.get(kind, {}), **ours, "lastTransitionTime": since})
    return kept


def _is_ours(condition: dict[str, Any]) -> bool:
    return condition.get("type") in LIFECYCLE and condition.get("reason") == REASON
