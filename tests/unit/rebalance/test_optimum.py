"""Plans of clusters with constraints, carried out by rules of their own."""

from __future__ import annotations

import json
import time

import pytest

from hack.optimum.instances import Instance, documents, instance
from hack.optimum.replay import Move, problems
from reserver.rebalance.capacity import identified
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.defragment import defragment
from reserver.rebalance.dump import read_dump
from reserver.rebalance.plan import Plan
from reserver.rebalance.planning_snapshot import PlanningSnapshot, planning_snapshot
from reserver.rebalance.time_limit import TimeLimit


def planned(found: Instance) -> PlanningSnapshot:
    given = {"apiVersion": "v1", "kind": "List", "items": documents(found)}
    state = identified(read_dump(json.dumps(given).encode()).inventory)

    def protects(pod: ListedPod) -> str:
        return "it is bare" if found.apps[found.pods[pod.name.name][0]].bare else ""

    return planning_snapshot(state, protects)


def broken(found: Instance, plan: Plan) -> list[str]:
    moves = [Move(each.pod.name, each.source or "", each.target or "") for each in plan.moves]
    return list(problems(found, moves, plan.emptied))


@pytest.mark.parametrize("full", [0.6, 0.75, 0.85, 0.92])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_plan_breaks_no_constraint_and_keeps_its_bound(seed: int, full: float) -> None:
    found = instance(10, full, seed)
    plan = defragment(planned(found), limit=TimeLimit.after(1.0, time.monotonic))
    assert broken(found, plan) == []
    assert len(plan.emptied) <= (plan.bound.most_nodes or 0)
    assert len(plan.moves) >= (plan.bound.fewest_moves or 0)
