"""A random cluster as Reserver reads it, and its plans as the replay does."""

from __future__ import annotations

import json

from hack.optimum.instances import Instance
from hack.optimum.objects import documents
from hack.optimum.replay import Move, problems
from reserver.rebalance.capacity import identified
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.dump import read_dump
from reserver.rebalance.plan import Plan
from reserver.rebalance.planning_snapshot import PlanningSnapshot, planning_snapshot


def planned(found: Instance) -> PlanningSnapshot:
    """Return a cluster as Reserver reads it."""
    given = {"apiVersion": "v1", "kind": "List", "items": documents(found)}
    state = identified(read_dump(json.dumps(given).encode()).inventory)

    def protects(pod: ListedPod) -> str:
        return "it is bare" if found.apps[found.pods[pod.name.name][0]].bare else ""

    pending = [each.pod for each in state.pods if not each.pod.node]
    return planning_snapshot(state, protects, wanted=pending)


def broken(found: Instance, plan: Plan) -> list[str]:
    """Return the constraints that a plan breaks."""
    moves = [Move(each.pod.name, each.source or "", each.target or "") for each in plan.moves]
    landings = [Move(each.pod.name, "", each.node) for each in plan.landings]
    return list(problems(found, [*moves, *landings], plan.emptied))


def ends(found: Instance, plan: Plan) -> dict[str, str]:
    """Return the node of each pod after a plan; empty for one that has none."""
    moved = {each.pod.name: each.target or "" for each in plan.moves}
    landed = {each.pod.name: each.node for each in plan.landings}
    return {pod: node for pod, (_, node) in found.pods.items()} | moved | landed
