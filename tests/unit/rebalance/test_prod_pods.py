"""Thresholds of prod pods, as Koordinator's LowNodeLoad has them."""

import msgspec
import pytest

from reserver.cluster.pod import PodName
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.node_load import is_prod, prod_usage
from tests.unit.rebalance.loaded import World, node, pod, pool

PROD = {"koordinator.sh/priority-class": "koord-prod"}
BATCH = {"koordinator.sh/priority-class": "koord-batch"}
ARGS = pool(prod_low_thresholds={"cpu": 20}, prod_high_thresholds={"cpu": 50})


def prod(name: str, on: str = "busy") -> ListedPod:
    return pod(name, on, priority=0, **PROD)


def busy(*pods: tuple[ListedPod, float], **used: float) -> World:
    """Return a world with a node at 70 %, of which prod pods use 60 % and batch pods 10 %."""
    mine = [(prod(f"p{n}"), 12.0) for n in range(5)]
    return World(
        {"busy": 70.0, **used}, *mine, (pod("batch", "busy", priority=-1, **BATCH), 10.0), *pods
    )


def test_prod_pods_leave_a_node_where_they_use_too_much() -> None:
    world = busy(cool=10)
    world.round(ARGS)
    assert world.moves == [
        ("p0", "cool", "node is overutilized, prod cpu usage(60.00%)>threshold(50.00%)")
    ]


def test_without_thresholds_of_prod_pods_nothing_leaves() -> None:
    world = busy(cool=10)
    world.round(pool())
    assert world.moves == []


@pytest.mark.parametrize(
    ("others", "used", "moved"),
    [
        ([], {"middle": 60}, ["p0"]),
        ([(prod("q", "middle"), 21.0)], {"middle": 60}, []),
        ([], {"middle": 70}, []),
        ([], {"hot": 85}, []),
    ],
    ids=[
        "a node in between takes prod pods while its own use little",
        "not while they use more",
        "nor if it would become hot as a whole",
        "nor if it is hot",
    ],
)
def test_prod_pods_go_where_both_thresholds_allow(
    others: list[tuple[ListedPod, float]], used: dict[str, float], moved: list[str]
) -> None:
    world = busy(*others, **used)
    world.round(ARGS)
    assert world.moved == moved


def test_a_low_node_whose_prod_pods_use_too_much_takes_no_load() -> None:
    low = [(prod(f"q{n}", "low"), 6.0) for n in range(2)]
    pods = [(pod(f"b{n}", "hot", priority=0, **BATCH), 10.0) for n in range(2)]
    args = pool(prod_low_thresholds={"cpu": 5}, prod_high_thresholds={"cpu": 10})
    world = World({"hot": 85.0, "low": 30.0}, *low, *pods)
    world.round(args)
    assert world.moves == []


def test_a_prod_pod_that_leaves_a_hot_node_counts_for_the_prod_pods_of_its_target() -> None:
    hot = [(prod(f"h{n}", "hot"), 15.0) for n in range(1)]
    world = busy(*hot, hot=90.0, cool=10.0)
    args = pool(prod_low_thresholds={"cpu": 20}, prod_high_thresholds={"cpu": 20})
    world.round(args)
    # The first takes 15 of the 20 % that prod pods may use there: no other prod pod has room.
    assert world.moved == ["h0"]


def test_a_cordoned_node_takes_no_prod_pods() -> None:
    world = busy(cool=10)
    world.nodes["cool"] = node("cool", unschedulable=True)
    world.round(ARGS)
    assert world.moves == []


def test_rounds_in_which_prod_pods_use_too_much_are_counted_by_themselves() -> None:
    condition = AnomalyCondition(consecutive_abnormalities=2)
    args = pool(
        prod_low_thresholds={"cpu": 20},
        prod_high_thresholds={"cpu": 50},
        anomaly_condition=condition,
    )
    world = busy(cool=10)
    for moves in (0, 0, 1):
        world.round(args, world.rounds)
        assert len(world.moves) == moves
        assert world.rounds.anomalies == {}


def test_prod_pods_without_metrics_are_not_taken_for_idle() -> None:
    pods, load = [prod("p"), prod("young")], SmoothedLoad(pods={PodName("shop", "p"): {"cpu": 5.0}})
    why = prod_usage(pods, load, ["cpu", "memory"])
    assert why == "its metrics do not say how much memory its prod pods use"
    assert prod_usage(pods, load, ["cpu", "pods"]) == {"cpu": 5.0, "pods": 2.0}
    assert prod_usage([], load, ["memory"]) == {"memory": 0.0}


@pytest.mark.parametrize(
    ("labels", "priority", "qos", "expected"),
    [
        (PROD, 0, "BestEffort", True),
        (BATCH, 9500, "Guaranteed", False),
        ({}, 9500, "BestEffort", True),
        ({}, 5500, "Guaranteed", False),
        ({}, 0, "Burstable", True),
        ({}, 2_000_000_000, "Guaranteed", True),
        ({}, 0, "BestEffort", False),
        ({"koordinator.sh/qosClass": "BE"}, 0, "Burstable", False),
        ({"koordinator.sh/qosClass": "LS"}, 0, "BestEffort", True),
        ({"koordinator.sh/priority-class": "gold"}, 5500, "Burstable", True),
    ],
)
def test_the_class_of_a_pod(
    labels: dict[str, str], priority: int, qos: str, *, expected: bool
) -> None:
    judged = msgspec.structs.replace(pod("p", priority=priority, **labels), qos=qos)
    assert is_prod(judged) is expected


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"prod_high_thresholds": {"cpu": 50}}, "prodLowThresholds"),
        ({"prod_low_thresholds": {"cpu": 50}}, "prodHighThresholds"),
        (
            {"prod_low_thresholds": {"cpu": 60}, "prod_high_thresholds": {"cpu": 50}},
            "prodLowThresholds.cpu",
        ),
        (
            {"prod_low_thresholds": {"cpu": 6}, "prod_high_thresholds": {"memory": 50}},
            "prodHighThresholds.memory",
        ),
        (
            {"prod_low_thresholds": {"cpu": 6}, "prod_high_thresholds": {"cpu": 101}},
            "prodHighThresholds.cpu",
        ),
    ],
)
def test_thresholds_that_mean_nothing_are_refused(
    changes: dict[str, dict[str, float]], path: str
) -> None:
    (refused,) = pool(**changes).problems()
    assert refused.path == f"nodePools[0].{path}"


def test_thresholds_beside_the_pools_have_those_of_prod_pods_too() -> None:
    cpu = {"cpu": 10.0}
    args = LowNodeLoad(
        low_thresholds=cpu,
        high_thresholds=cpu,
        prod_low_thresholds=cpu,
        prod_high_thresholds=cpu,
    )
    (only,) = args.node_pools
    assert only.prod is not None
    assert list(args.problems()) == []
