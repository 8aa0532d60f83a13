"""The program of pods by class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reserver.cluster.budgets import Budget
from reserver.cluster.labels import equals
from reserver.cluster.pod import Pod, PodHealth
from reserver.rebalance.class_model import ClassModel
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from reserver.rebalance.time_limit import TimeLimit
from tests.builders import name, node, pod
from tests.unit.rebalance.scenes import scene

LIMIT = TimeLimit.after(600.0, lambda: 0.0)
"""Of programs that are solved at once."""

WANTED = pod("wanted", cpu="3")


def cluster(*more: Pod) -> PlanningSnapshot:
    """Return three nodes with pods that leave no room for the wanted one."""
    return scene(
        *(node(each, cpu="4") for each in "abc"),
        pod("p", node="a", cpu="2"),
        pod("q", node="b", cpu="2"),
        pod("r", node="c", cpu="2"),
        *more,
        wanted=[WANTED],
    )


def model(planned: PlanningSnapshot, landing: str = "abc") -> ClassModel:
    numbers = np.arange(len(planned.pods))
    everywhere = np.ones(len(planned.closed), dtype=np.bool_)
    rows = planned.snapshot.rows(list(landing))
    where = (everywhere, np.isin(np.arange(len(everywhere)), rows))
    return ClassModel(planned, planned.rows.copy(), numbers, where, numbers[:0])


def test_a_pod_more_lands_with_the_fewest_moves() -> None:
    planned = cluster()
    found = model(planned).more(LIMIT)
    assert found is not None
    assert NOWHERE not in found.rows.values()
    moved = [n for n, row in found.rows.items() if planned.rows[n] not in {row, NOWHERE}]
    assert len(moved) == 1


@pytest.mark.parametrize(("dear", "leaves"), [(0, 1), (1, 0)])
def test_of_a_class_the_pods_leave_whose_moves_cost_least(dear: int, leaves: int) -> None:
    alike = [pod(name, node="a", cpu="2") for name in ("p", "q")]
    wanted = pod("wanted", cpu="2")
    planned = scene(node("a", cpu="4"), node("b", cpu="2"), *alike, wanted=[wanted])
    planned.costs[dear] = 2.0
    found = model(planned, landing="a").more(LIMIT)
    assert found is not None
    assert [n for n in range(2) if found.rows[n] != planned.rows[n]] == [leaves]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_pod_lands_on_the_node_that_is_to_gain(name: str) -> None:
    planned = cluster()
    found = model(planned, landing=name).more(LIMIT)
    assert found is not None
    wanted = next(n for n, row in enumerate(planned.rows) if row == NOWHERE)
    assert planned.snapshot.name_of(found.rows[wanted]) == name


def test_no_more_land_than_there_is_room_for() -> None:
    full = cluster(pod("s", node="a", cpu="2"), pod("t", node="b", cpu="2"))
    assert model(full).more(LIMIT) is None


def test_what_is_stuck_is_not_tried_again() -> None:
    planned = cluster()
    asked = model(planned)
    seen = set[tuple[tuple[int, int], ...]]()
    while (found := asked.more(LIMIT)) is not None:
        goals = {n: row for n, row in found.rows.items() if row != planned.rows[n]}
        assert tuple(sorted(goals.items())) not in seen
        seen.add(tuple(sorted(goals.items())))
        assert asked.forbid(goals)
    assert seen


@pytest.mark.parametrize("unready", ["p", "q"])
def test_an_unready_pod_leaves_that_its_budget_spares(unready: str) -> None:
    alike = {each: pod(each, node="a", cpu="2", labels={"app": "q"}) for each in "pq"}
    alike[unready] = replace(alike[unready], health=PodHealth.UNREADY)
    spares = Budget(name=name("q"), selector=equals({"app": "q"}), spares_unhealthy=True)
    wanted = pod("wanted", cpu="2")
    nodes = (node("a", cpu="4"), node("b", cpu="2"))
    planned = scene(*nodes, *alike.values(), wanted=[wanted], budgets=[spares])
    found = model(planned, landing="a").more(LIMIT)
    assert found is not None
    left = {planned.pods[n].name.name for n in range(2) if found.rows[n] != planned.rows[n]}
    assert left == {unready}
