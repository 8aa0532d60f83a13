"""Another try for a pod whose whole sample was refused."""

from dataclasses import replace

import pytest

from reserver.cluster.constraints import Taint
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.verdicts import FilterVerdict, Nominate, Retry
from tests.builders import NOW, node, pod, reservation, state_of
from tests.unit.scheduling.asking import answer, ask, many

SAMPLE = [f"n{number}" for number in range(100)]


def ask_with_sample_held(
    asking: Pod, *things: Node | Pod | Reservation, names: list[str]
) -> FilterVerdict:
    """Filter nodes that are all held, in a cluster with some more objects."""
    holds = [reservation(f"r{number}", node=f"n{number}", cpu="4") for number in range(100)]
    return filter_nodes(asking, names, state_of(*many(100), *holds, *things), NOW)


ELSEWHERE = node("elsewhere", cpu="4")

PROMISED = pod("first", nominated="elsewhere", priority=1, cpu="2")

TAINTED = node("elsewhere", cpu="4", taints=[Taint("dedicated", "", "NoSchedule")])


@pytest.mark.parametrize(
    ("elsewhere", "effects"),
    [
        pytest.param([ELSEWHERE], 1, id="a node outside the sample fits"),
        pytest.param([], 0, id="there is no node outside the sample"),
        pytest.param([node("elsewhere", cpu="1")], 0, id="it is too small"),
        pytest.param([TAINTED], 0, id="it has a taint that the pod does not tolerate"),
        pytest.param([ELSEWHERE, pod("b", node="elsewhere", cpu="4")], 0, id="it is full"),
        pytest.param([ELSEWHERE, reservation("r", node="elsewhere", cpu="3")], 0, id="it is held"),
        pytest.param(
            [ELSEWHERE, reservation("r", node="elsewhere", cpu="2")],
            1,
            id="it has room beside what is held",
        ),
        pytest.param([ELSEWHERE, PROMISED], 1, id="it has room beside what is promised"),
        pytest.param([node("elsewhere", cpu="3"), PROMISED], 0, id="its room is promised"),
        pytest.param(
            [ELSEWHERE, PROMISED, reservation("r", node="elsewhere", cpu="1")],
            0,
            id="its room beside what is held is promised",
        ),
        pytest.param(
            [node("elsewhere", cpu="3"), replace(PROMISED, priority=-1)],
            1,
            id="its room is promised to one that comes after",
        ),
    ],
)
def test_a_pod_is_steered_only_if_a_node_outside_its_sample_fits(
    elsewhere: list[Node | Pod | Reservation], effects: int
) -> None:
    asking = pod("a", cpu="2")
    verdict = ask_with_sample_held(asking, *elsewhere, names=SAMPLE)
    assert answer(verdict) == []
    assert verdict.effects == (Nominate(asking, "elsewhere"),) * effects


def test_pods_that_are_refused_together_are_steered_to_different_nodes() -> None:
    free = [node(f"free-{number}", cpu="2") for number in range(40)]
    chosen = set()
    for number in range(40):
        verdict = ask_with_sample_held(pod(f"p{number}", cpu="2"), *free, names=SAMPLE)
        (steer,) = verdict.effects
        assert isinstance(steer, Nominate)
        chosen.add(steer.node)
    assert len(chosen) > 15


def test_fewer_names_than_the_least_sample_are_all_that_kube_scheduler_has() -> None:
    verdict = ask_with_sample_held(pod("a", cpu="2"), ELSEWHERE, names=SAMPLE[:99])
    assert (answer(verdict), verdict.effects) == ([], ())


def test_a_pod_that_wants_what_no_node_offers_is_not_tried_again() -> None:
    verdict = ask(pod("a", cpu="1", gpu="1"), reservation("r", cpu="4"), names=["worker-1"])
    assert verdict.effects == ()


def test_names_that_nobody_knows_do_not_hide_that_no_other_node_is_left() -> None:
    ghosts = [reservation(f"g{number}", node=f"ghost-{number}", cpu="4") for number in (1, 2)]
    names = ["ghost-1", *SAMPLE, "ghost-2"]
    assert ask_with_sample_held(pod("a", cpu="1"), *ghosts, names=names).effects == ()


def test_the_tries_that_are_worth_it_are_those_that_see_every_node_once() -> None:
    nodes = many(300)
    names = [f"n{number}" for number in range(100)]
    holds = [reservation(f"r{number}", node=f"n{number}", cpu="4") for number in range(299)]
    asking = pod("a", cpu="1", nominated="n5")
    state = state_of(*nodes, *holds)
    verdict = filter_nodes(asking, names, state, NOW)
    assert verdict.effects == (Retry(asking, attempts=3),)
