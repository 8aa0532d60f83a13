"""LowNodeLoad in one round: which pods leave, and for where."""

from typing import Any

import pytest
from msgspec.structs import replace

from reserver.cluster.labels import equals
from reserver.rebalance.arguments.base import Choice
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad
from tests.unit.rebalance.loaded import ARGS, NOW, POOL, World, cores, hot_and_cool, node, pod, pool


def test_pods_leave_a_hot_node_until_it_is_below_its_threshold() -> None:
    world = hot_and_cool()
    world.round()
    assert world.moves == [
        ("p0", "cool-2", "node is overutilized, cpu usage(95.00%)>threshold(80.00%)"),
        ("p1", "cool-2", "node is overutilized, cpu usage(85.00%)>threshold(80.00%)"),
    ]


def test_nodes_that_take_load_are_filled_evenly() -> None:
    world = World({"hot": 99, "cool-1": 10, "cool-2": 10}, *((pod(f"p{n}"), 5.0) for n in range(8)))
    world.round()
    assert [target for _, target, _ in world.moves] == ["cool-1", "cool-2", "cool-1", "cool-2"]


def test_nothing_moves_unless_more_nodes_than_number_of_nodes_take_load() -> None:
    for number, moves in ((2, 0), (1, 2)):
        world = hot_and_cool()
        world.round(replace(ARGS, number_of_nodes=number))
        assert len(world.moves) == moves


def test_a_cordoned_node_takes_no_load() -> None:
    world = hot_and_cool()
    world.nodes["cool-2"] = node("cool-2", unschedulable=True)
    world.round()
    assert {target for _, target, _ in world.moves} == {"cool-1"}


def test_a_node_that_would_become_hot_itself_takes_no_pod() -> None:
    world = World({"hot": 95, "cool": 40}, (pod("big"), 45.0))
    ((spared, why),) = world.round().spared
    assert world.moves == []
    assert (spared.name.name, why) == ("big", "no node that takes load has room for it")


def test_without_node_fit_only_the_budget_counts() -> None:
    world = World({"hot": 95, "cool": 40}, (pod("big"), 45.0))
    world.round(replace(ARGS, node_fit=False))
    assert [(name, target) for name, target, _ in world.moves] == [("big", None)]


def test_pods_stay_that_fit_on_no_node_that_takes_load() -> None:
    world = hot_and_cool()
    world.round(fits=lambda _, name: name == "cool-1")
    assert [target for _, target, _ in world.moves] == ["cool-1", "cool-1"]
    world = hot_and_cool()
    assert len(world.round(fits=lambda *_: False).spared) == 4
    assert world.moves == []


def test_the_idle_capacity_bounds_what_moves() -> None:
    pods = ((pod(f"p{n:02}"), 3.0) for n in range(30))
    world = World({"hot": 100, "cool": 40}, *pods)
    world.round(replace(pool(high_thresholds={"cpu": 50}), node_fit=False))
    assert len(world.moves) == 4  # 10 % are idle: the fourth pod takes the rest.


def test_pods_of_low_priority_leave_first_and_then_those_that_relieve_most() -> None:
    world = World(
        {"hot": 100, "cool": 0},
        (pod("small"), 5.0),
        (pod("large"), 14.0),
        (pod("important", priority=1), 15.0),
    )
    world.round()
    assert world.moved == ["large", "small", "important"]


def test_a_limit_that_forbids_a_move_leaves_its_load_where_it_is() -> None:
    world = hot_and_cool()
    world.round(limit=1)
    assert world.moved == ["p0"]


IDLE = ((pod("idle"), 0.0),)
WAITS = replace(POOL, anomaly_condition=AnomalyCondition())


@pytest.mark.parametrize(
    ("changes", "args"),
    [
        ({"used": {"hot": 80, "cool-1": 0, "cool-2": 0}}, ARGS),
        ({"used": {"hot": 95, "cool-1": 41, "cool-2": 41}}, ARGS),
        ({"on_the_way": cores(130)}, ARGS),
        ({"pods": IDLE}, ARGS),
        ({}, replace(ARGS, evictable_namespaces=Choice(exclude=frozenset({"shop"})))),
        ({}, replace(ARGS, evictable_namespaces=Choice(include=frozenset({"other"})))),
        ({}, replace(ARGS, pod_selectors=(equals({"app": "other"}),))),
        ({}, replace(ARGS, paused=True)),
        ({}, replace(ARGS, pools=(WAITS, POOL))),
    ],
    ids=[
        *("exactly at the threshold", "no node is below its low threshold"),
        *("what is on its way takes what is idle", "pods that do not use what is short"),
        *("excluded", "not included", "not selected", "paused"),
        "left to an earlier pool that waits",
    ],
)
def test_nothing_moves(changes: dict[str, Any], args: LowNodeLoad) -> None:
    world = hot_and_cool()
    for name, value in changes.items():
        setattr(world, name, value)
    world.round(args)
    assert world.moves == []


def test_a_pod_leaves_that_one_of_the_selectors_matches() -> None:
    world = World({"hot": 95, "cool": 0}, (pod("p", app="web"), 20.0))
    world.round(replace(ARGS, pod_selectors=(equals({"app": "db"}), equals({"app": "web"}))))
    assert world.moved == ["p"]


def test_pods_that_the_evictor_protects_stay() -> None:
    world = hot_and_cool()
    world.round(may_leave=lambda each: each.name.name == "p3")
    assert world.moved == ["p3"]


def test_a_dry_run_says_what_it_would_move() -> None:
    world = hot_and_cool()
    found = world.round(replace(ARGS, dry_run=True))
    assert world.moves == []
    assert {why for _, why in found.spared} == {"LowNodeLoad is set to dryRun"}


def test_a_node_without_metrics_is_skipped_and_named() -> None:
    world = hot_and_cool()
    world.nodes["lost"] = node("lost")
    assert world.round().notes == ["LowNodeLoad skips node lost: it has no metrics"]
    assert len(world.moves) == 2


def test_a_node_whose_metrics_are_too_old_is_skipped_and_named() -> None:
    world = hot_and_cool()
    world.read_at = NOW - 180
    notes = world.round().notes
    assert notes[0] == "LowNodeLoad skips node hot: its metrics are 180 seconds old"
    assert (len(notes), world.moves) == (3, [])
    world.read_at = NOW - 179
    assert world.round().notes == []


def test_a_node_whose_metrics_say_nothing_of_a_resource_is_skipped_and_named() -> None:
    world = hot_and_cool()
    notes = world.round(pool(low_thresholds={"cpu": 40, "nvidia.com/gpu": 10})).notes
    assert notes[0] == (
        "LowNodeLoad skips node hot: its metrics do not say how much nvidia.com/gpu it uses"
    )
    assert world.moves == []


def test_pods_without_metrics_stay() -> None:
    world = hot_and_cool()
    world.pods = (*((each, used) for each, used in world.pods if each.name.name == "p2"),)
    world.round()
    assert world.moved == ["p2"]


def test_the_number_of_pods_has_thresholds_as_any_resource_has() -> None:
    pods = ((pod(f"p{n:02}"), 0.0) for n in range(30))
    world = World({"hot": 0, "cool": 0}, *pods)
    world.round(pool(low_thresholds={"pods": 5}, high_thresholds={"pods": 20}))
    assert len(world.moves) == 8  # 22 of 110 may stay.


def test_with_deviation_thresholds_are_distances_from_the_mean() -> None:
    world = World({"hot": 60, "cool": 20, "mean": 40}, *((pod(f"p{n}"), 4.0) for n in range(9)))
    args = pool(
        use_deviation_thresholds=True, low_thresholds={"cpu": 10}, high_thresholds={"cpu": 10}
    )
    world.round(args)
    assert [target for _, target, _ in world.moves] == ["cool"] * 3


def test_pools_balance_among_themselves_and_the_first_one_has_a_node() -> None:
    gpu = replace(POOL, name="gpu", node_selector=equals({"gpu": "yes"}))
    world = World(
        {"gpu-hot": 95, "gpu-cool": 30, "cool": 0},
        *((pod(f"p{n}", "gpu-hot"), 4.0) for n in range(20)),
    )
    world.nodes |= {name: node(name, gpu="yes") for name in ("gpu-hot", "gpu-cool")}
    world.round(replace(ARGS, pools=(gpu, POOL)))
    assert {target for _, target, _ in world.moves} == {"gpu-cool"}
    assert len(world.moves) == 4


def test_weights_say_which_node_is_relieved_first() -> None:
    world = World(
        {"a-hot": 85, "b-hot": 95, "cool": 0}, (pod("a", "a-hot"), 5.0), (pod("b", "b-hot"), 5.0)
    )
    world.round()
    assert world.moved == ["b", "a"]


def test_a_move_says_by_how_much_the_fuller_node_is_used_less() -> None:
    world = hot_and_cool()
    found = world.round(least_gain=10.0)
    assert world.gains == [10.0, 10.0]
    assert not found.spared
    found = world.round(least_gain=10.5)
    assert len(world.gains) == 2
    assert {why for _, why in found.spared} == {"it would gain 10.0 points, less than 10.5"}
