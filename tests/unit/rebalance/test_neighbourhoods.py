"""The nodes on which a plan is improved next."""

from __future__ import annotations

import numpy as np
import pytest

from reserver.cluster.capacity_matrix import Rows
from reserver.rebalance.neighbourhoods import Neighbourhoods
from reserver.rebalance.packing import scarcity
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot
from tests.builders import node, pod
from tests.unit.rebalance.scenes import scene, unprotected

WANTED = pod("wanted", cpu="6")


def near(planned: PlanningSnapshot, homes: Rows, seed: int, can_empty: str = "") -> Neighbourhoods:
    weights = scarcity(planned)
    return Neighbourhoods(
        planned=planned,
        homes=homes,
        movable=planned.movable | (homes == NOWHERE),
        can_empty=planned.snapshot.rows(list(can_empty)),
        sizes=planned.requests @ weights,
        weights=weights,
        drawn=np.random.default_rng(seed),
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_pod_is_to_land_only_where_others_can_make_room(seed: int) -> None:
    planned = scene(
        node("small", cpu="4"),
        node("stuck", cpu="8"),
        pod("protected", node="stuck", cpu="3"),
        node("right", cpu="8"),
        pod("p", node="right", cpu="8"),
        wanted=[WANTED],
        protects=lambda each: "it is bare" if each.name.name == "protected" else unprotected(each),
    )
    found = near(planned, planned.rows.copy(), seed).gaining(1)
    assert planned.snapshot.name_of(found.target) == "right"
    assert found.inside.tolist() == (np.arange(len(found.inside)) == found.target).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_an_emptied_node_is_not_to_gain_again(seed: int) -> None:
    planned = scene(
        *(node(each, cpu="4") for each in "abc"), pod("p", node="a"), pod("q", node="b")
    )
    homes = planned.rows.copy()
    planned.put(0, int(homes[1]))
    assert planned.snapshot.name_of(near(planned, homes, seed, "ab").gaining(2).target) == "b"


@pytest.mark.parametrize("seed", range(8))
def test_a_node_that_is_emptied_dearly_is_exchanged(seed: int) -> None:
    many = [pod(f"p{number}", node="a", cpu="100m") for number in range(6)]
    planned = scene(*(node(each, cpu="4") for each in "abcdefgh"), *many, pod("q", node="b"))
    homes = planned.rows.copy()
    target = int(planned.snapshot.rows(["c"])[0])
    for number in np.flatnonzero(homes == planned.snapshot.rows(["a"])[0]).tolist():
        planned.put(number, target)
    inside = near(planned, homes, seed, "ab").exchanging(4).inside
    assert inside[planned.snapshot.rows(["a", "b"])].all()
