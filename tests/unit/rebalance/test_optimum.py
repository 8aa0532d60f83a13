"""Plans of clusters with constraints, carried out by rules of their own."""

from __future__ import annotations

import time

import pytest

from hack.optimum.instances import instance, wanting
from hack.optimum.planning import broken, planned
from reserver.rebalance.defragment import defragment
from reserver.rebalance.makeroom import make_room
from reserver.rebalance.time_limit import TimeLimit


@pytest.mark.parametrize("full", [0.6, 0.75, 0.85, 0.92])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_plan_breaks_no_constraint_and_keeps_its_bound(seed: int, full: float) -> None:
    found = instance(10, full, seed)
    plan = defragment(planned(found), limit=TimeLimit.after(1.0, time.monotonic))
    assert broken(found, plan) == []
    assert len(plan.emptied) <= (plan.bound.most_nodes or 0)
    assert len(plan.moves) >= (plan.bound.fewest_moves or 0)


@pytest.mark.parametrize("full", [0.6, 0.85, 0.92])
def test_room_for_pending_pods_breaks_no_constraint(full: float) -> None:
    found = wanting(instance(20, full, 1), 1)
    plan = make_room(planned(found), limit=TimeLimit.after(1.0, time.monotonic))
    assert broken(found, plan) == []
    assert plan.landings


@pytest.mark.parametrize(("full", "most", "fewest"), [(0.85, 2, 13), (0.92, 2, 10)])
def test_a_plan_is_as_good_as_cp_sat_has_proved(full: float, most: int, fewest: int) -> None:
    limit = TimeLimit.after(5.0, time.process_time)
    plan = defragment(planned(instance(20, full, 1)), limit=limit)
    assert len(plan.emptied) == most
    assert len(plan.moves) <= 1.2 * fewest
