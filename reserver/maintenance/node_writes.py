"""Writes nodes as their maintenance wants them: annotation, cordon and conditions."""

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
    """Return whether a node is not as it is to be."""
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
    """Write a node as it is to be; return False if somebody has written it since it was seen.

    The annotation and the cordon are one write: whoever finds the one finds the other. Conditions
    follow: who comes after a crash in between finds that they lack.

    Args:
        seen: what was decided on.
        goal: how it is to be.
        annotation: its annotation when it was seen.
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
    """Return all conditions of a node with those of its maintenance; those of others stay."""
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
