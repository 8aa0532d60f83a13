from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad, NodePool
from reserver.rebalance.arguments.selecting import Choice
from reserver.rebalance.inventory import ListedNode, ListedPod, Owner
from reserver.rebalance.load import (
    NOTHING_SEEN,
    Departure,
    Load,
    Memory,
    Standing,
    departed,
    load_of,
    seen,
    settled,
)
from reserver.rebalance.readings import Average, Reading, Readings
from reserver.rebalance.spells import NO_ROUNDS, Rounds
from reserver.rebalance.strategies.low_node_load import Findings, Surroundings, balance

NOW = 10_000.0
CORES = 10_000
AT_ONCE = AnomalyCondition(consecutive_abnormalities=1)
POOL = NodePool(low_thresholds={"cpu": 40}, high_thresholds={"cpu": 80}, anomaly_condition=AT_ONCE)
ARGS = LowNodeLoad(node_pools=(POOL,))


def node(name: str, *, unschedulable: bool = False, **labels: str) -> ListedNode:
    offered = {"cpu": CORES, "memory": 2**30, "pods": 110}
    return ListedNode(
        node=Node(name=name, allocatable=offered, labels=labels, unschedulable=unschedulable)
    )


def pod(name: str, on: str = "hot", *, priority: int = 0, **labels: str) -> ListedPod:
    made = Pod(name=PodName("shop", name), uid=f"uid-{name}", node=on, labels=labels)
    return ListedPod(pod=made, priority=priority, owners=(Owner("RS", "rs", "rs"),))


def cores(percent: float) -> dict[str, float]:
    return {"cpu": percent * CORES / 100}


class World:
    """A cluster of which the load is written down.

    Attributes:
        used: the cpu that each node uses, in percent; a node that is missing has no metrics.
        pods: the pods, each with the cpu that it uses in percent of a node.
        nodes: the nodes, by name.
        rounds: what the latest round wants to have remembered.
        moves: which pod went where, and why.
    """

    def __init__(self, used: dict[str, float], *pods: tuple[ListedPod, float]) -> None:
        self.used = used
        self.pods = pods
        self.nodes = {name: node(name) for name in used}
        self.on_the_way: dict[str, float] = {}
        self.read_at = NOW
        self.rounds = NO_ROUNDS
        self.moves: list[tuple[str, str | None, str]] = []

    def round(
        self,
        args: LowNodeLoad = ARGS,
        rounds: Rounds = NO_ROUNDS,
        *,
        now: float = NOW,
        fits: Callable[[ListedPod, str], bool] = lambda *_: True,
        may_leave: Callable[[ListedPod], bool] = lambda _: True,
        limit: int = 100,
    ) -> Findings:
        def evict(leaving: ListedPod, target: str | None, reason: str) -> bool:
            if len(self.moves) < limit:
                self.moves.append((leaving.name.name, target, reason))
                return True
            return False

        by_node: dict[str, list[ListedPod]] = {}
        for each, _ in self.pods:
            by_node.setdefault(each.node, []).append(each)
        load = Load(
            nodes={
                name: Average(cores(percent), self.read_at, self.read_at, 300.0)
                for name, percent in self.used.items()
            },
            pods={each.name: cores(percent) for each, percent in self.pods},
            on_the_way=self.on_the_way,
        )
        around = Surroundings(
            nodes=tuple(self.nodes.values()),
            pods=by_node,
            load=load,
            now=now,
            may_leave=may_leave,
            fits=fits,
            evict=evict,
        )
        found, self.rounds = balance(args, around, rounds)
        return found

    @property
    def moved(self) -> list[str]:
        return [name for name, _, _ in self.moves]


def hot_and_cool() -> World:
    """Return a node at 95 % with four pods of 10 %, and two cool ones."""
    pods = ((pod(f"p{n}"), 10.0) for n in range(4))
    return World({"hot": 95, "cool-1": 30, "cool-2": 10}, *pods)


def pool(**changes: Any) -> LowNodeLoad:
    return replace(ARGS, node_pools=(replace(POOL, **changes),))


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


def test_a_node_exactly_at_its_threshold_is_not_hot() -> None:
    world = hot_and_cool()
    world.used["hot"] = 80
    world.round()
    assert world.moves == []


def test_nothing_moves_while_no_node_is_below_its_low_threshold() -> None:
    world = hot_and_cool()
    world.used |= {"cool-1": 41, "cool-2": 41}
    world.round()
    assert world.moves == []


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
    assert len(world.moves) == 4  # 10 % are idle: the fourth takes what is left.


def test_what_is_on_its_way_takes_from_the_idle_capacity() -> None:
    world = World({"hot": 100, "cool": 40}, (pod("p"), 3.0))
    world.on_the_way = cores(40)
    world.round(replace(ARGS, node_fit=False))
    assert world.moves == []


def test_pods_of_low_priority_leave_first_and_then_those_that_relieve_most() -> None:
    world = World(
        {"hot": 100, "cool": 0},
        (pod("small"), 5.0),
        (pod("large"), 14.0),
        (pod("important", priority=1), 15.0),
    )
    world.round()
    assert world.moved == ["large", "small", "important"]


def test_a_pod_that_does_not_use_what_its_node_is_short_of_stays() -> None:
    world = World({"hot": 95, "cool": 0}, (pod("idle"), 0.0))
    world.round()
    assert world.moves == []


def test_a_limit_that_forbids_a_move_leaves_its_load_where_it_is() -> None:
    world = hot_and_cool()
    world.round(limit=1)
    assert world.moved == ["p0"]


@pytest.mark.parametrize(
    "args",
    [
        replace(ARGS, evictable_namespaces=Choice(exclude=frozenset({"shop"}))),
        replace(ARGS, evictable_namespaces=Choice(include=frozenset({"other"}))),
        replace(ARGS, pod_selectors=(equals({"app": "other"}),)),
        replace(ARGS, paused=True),
    ],
    ids=["excluded", "not included", "not selected", "paused"],
)
def test_what_the_arguments_do_not_choose_stays(args: LowNodeLoad) -> None:
    world = hot_and_cool()
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
    world.round(replace(ARGS, node_pools=(gpu, POOL)))
    assert {target for _, target, _ in world.moves} == {"gpu-cool"}
    assert len(world.moves) == 4


def test_a_hot_node_of_an_earlier_pool_is_left_to_it_even_if_it_waits() -> None:
    waits = replace(POOL, anomaly_condition=AnomalyCondition())
    world = hot_and_cool()
    world.round(replace(ARGS, node_pools=(waits, POOL)))
    assert world.moves == []


def test_weights_say_which_node_is_relieved_first() -> None:
    world = World(
        {"a-hot": 85, "b-hot": 95, "cool": 0}, (pod("a", "a-hot"), 5.0), (pod("b", "b-hot"), 5.0)
    )
    world.round()
    assert world.moved == ["b", "a"]


WAITS = pool(anomaly_condition=AnomalyCondition())


def hot_rounds(world: World, *is_hot: bool, every: float = 60.0) -> list[int]:
    """Return how many pods moved in each of several rounds."""
    moved = []
    for number, each in enumerate(is_hot):
        world.used["hot"] = 95 if each else 60
        world.moves = []
        world.read_at = NOW + number * every
        world.round(WAITS, world.rounds, now=world.read_at)
        moved.append(len(world.moves))
    return moved


def test_a_node_is_relieved_in_its_sixth_hot_round_in_a_row() -> None:
    assert hot_rounds(hot_and_cool(), *[True] * 7) == [0, 0, 0, 0, 0, 2, 0]


def test_a_round_that_is_not_hot_begins_the_count_anew() -> None:
    assert hot_rounds(hot_and_cool(), *[True] * 5, *[False], *[True] * 6) == [0] * 11 + [2]


def test_a_node_that_waits_is_named_with_its_rounds() -> None:
    world = hot_and_cool()
    assert world.round(WAITS).notes == [
        "LowNodeLoad waits: node hot was hot for 1 rounds in a row, and moves begin after 5"
    ]


def test_a_node_that_counts_as_hot_does_so_until_it_was_calm_for_more_than_three_rounds() -> None:
    slow = AnomalyCondition(timeout_s=3600)
    counts = {}
    for calm in (3, 4):
        world = World({"hot": 95, "cool": 10})  # Without pods that may leave it stays hot.
        for is_hot in (*[True] * 6, *[False] * calm, True):
            world.used["hot"] = 95 if is_hot else 60
            world.round(pool(anomaly_condition=slow), world.rounds)
        counts[calm] = world.rounds.spells["hot"].until is not None
    assert counts == {3: True, 4: False}


def test_a_node_that_counts_as_hot_for_longer_than_the_timeout_is_counted_anew() -> None:
    world = World({"hot": 95, "cool": 10})
    untils = []
    for number in range(8):
        world.read_at = NOW + 31 * number
        world.round(WAITS, world.rounds, now=world.read_at)
        untils.append(world.rounds.spells["hot"].until)
    assert untils == [None] * 5 + [NOW + 31 * 5 + 60] * 2 + [None]


def test_rounds_of_a_node_that_is_not_seen_for_longer_than_the_cache_are_forgotten() -> None:
    world = World({"hot": 95, "cool": 10})
    world.round(WAITS)
    spells = world.rounds.spells
    del world.used["hot"]
    for later, kept in ((299, spells), (301, {})):
        world.read_at = NOW + later
        world.round(WAITS, world.rounds, now=world.read_at)
        assert world.rounds.spells == kept


def test_rounds_count_however_far_apart_they_are() -> None:
    assert hot_rounds(hot_and_cool(), *[True] * 6, every=600.0) == [0, 0, 0, 0, 0, 2]


class Swinging:
    """Two nodes with a steady load, and one that swings from one to the other each minute.

    kube-scheduler puts the successor of a pod on the emptier node. Metrics cover fifteen seconds.

    Attributes:
        returns: kube-scheduler puts it on the same node again.
        pods: where each pod is; the steady load of each is 5 % of a node.
        moves: from which node to which a pod has moved.
        moved_at: when, in seconds.
    """

    def __init__(self, phase: float, pods_on: Mapping[str, int]) -> None:
        self.phase = phase
        self.returns = False
        self.pods: dict[str, tuple[str, float]] = {}
        for name, count in pods_on.items():
            for number in range(count):
                self.pods[f"{name}-{number}"] = (name, -1000.0)
        self.moves: list[tuple[str, str]] = []
        self.moved_at: list[float] = []
        self.memory: Memory = NOTHING_SEEN
        self.rounds: Rounds = NO_ROUNDS

    def steady(self, name: str) -> float:
        return 5.0 * sum(at == name for at, _ in self.pods.values())

    def readings(self, now: float) -> Readings:
        is_first = (now + self.phase) // 60 % 2 == 0
        used = {
            name: cores(self.steady(name) + (55.0 if is_first is (name == "n1") else 0.0))
            for name in ("n1", "n2")
        }
        pods = {PodName("shop", name): Reading(cores(5), now, 15.0) for name in self.pods}
        return Readings(
            nodes={name: Reading(usage, now, 15.0) for name, usage in used.items()}, pods=pods
        )

    def go_on(self, args: LowNodeLoad, every: int, minutes: int) -> None:
        for now in range(0, minutes * 60, 15):
            uids = {PodName("shop", name): name for name in self.pods}
            self.memory = seen(self.memory, self.readings(now), uids)
            if now % every == 0:
                self.act(args, float(now))

    def act(self, args: LowNodeLoad, now: float) -> None:
        standing = [
            Standing(f"uid-{name}", "rs", at, made, made) for name, (at, made) in self.pods.items()
        ]
        self.memory = settled(self.memory, standing, now)
        by_node: dict[str, list[ListedPod]] = {}
        for name, (at, _) in self.pods.items():
            by_node.setdefault(at, []).append(pod(name, at))
        left: list[ListedPod] = []

        def evict(leaving: ListedPod, target: str | None, reason: str) -> bool:
            assert target
            assert reason
            left.append(leaving)
            return True

        around = Surroundings(
            nodes=(node("n1"), node("n2")),
            pods=by_node,
            load=load_of(self.memory),
            now=now,
            may_leave=lambda _: True,
            fits=lambda *_: True,
            evict=evict,
        )
        _, self.rounds = balance(args, around, self.rounds)
        departures = [Departure(each.pod.uid, "rs", each.node, cores(5), now, 0.0) for each in left]
        self.memory = departed(self.memory, departures)
        for each in left:
            del self.pods[each.name.name]
            lands = each.node if self.returns else min(("n1", "n2"), key=self.steady)
            self.moves.append((each.node, lands))
            self.moved_at.append(now)
            self.pods[f"{each.name.name}+"] = (lands, now + 1)


@pytest.mark.parametrize("abnormalities", [1, 2, 5])
@pytest.mark.parametrize("every", [15, 30, 60, 300])
@pytest.mark.parametrize("phase", [0.0, 20.0, 60.0, 75.0])
def test_under_a_load_that_swings_each_minute_no_pod_moves_back_and_forth(
    phase: float, every: int, abnormalities: int
) -> None:
    args = pool(
        low_thresholds={"cpu": 45},
        high_thresholds={"cpu": 70},
        anomaly_condition=AnomalyCondition(consecutive_abnormalities=abnormalities),
    )
    world = Swinging(phase, {"n1": 5, "n2": 5})
    world.go_on(args, every, minutes=120)
    assert not any(name.endswith("++") for name in world.pods), "a pod moved twice"
    assert all(at < 60 for at in world.moved_at), "it is known for what it is by then"


def test_a_pod_that_returns_to_its_node_is_left_in_peace() -> None:
    world = Swinging(0.0, {"n1": 5, "n2": 5})
    world.returns = True
    world.go_on(pool(low_thresholds={"cpu": 45}, high_thresholds={"cpu": 70}), 15, minutes=15)
    assert not any(name.endswith("++") for name in world.pods)


def test_the_same_load_swings_pods_without_an_average() -> None:
    """The test above would fail if readings were taken as they come."""
    args = pool(low_thresholds={"cpu": 45}, high_thresholds={"cpu": 70})
    world = Swinging(0.0, {"n1": 5, "n2": 5})
    for now in range(0, 3600, 60):
        world.memory = seen(
            NOTHING_SEEN,
            world.readings(now),
            {PodName("shop", name): name for name in world.pods},
        )
        world.act(args, float(now))
    assert any(name.endswith("++") for name in world.pods)


def test_a_load_that_stays_high_is_moved_once_and_then_it_is_quiet() -> None:
    args = pool(low_thresholds={"cpu": 45}, high_thresholds={"cpu": 70})
    world = Swinging(0.0, {"n1": 18, "n2": 2})
    world.readings = lambda now: Readings(  # type: ignore[method-assign]
        nodes={name: Reading(cores(world.steady(name)), now, 15.0) for name in ("n1", "n2")},
        pods={PodName("shop", name): Reading(cores(5), now, 15.0) for name in world.pods},
    )
    world.go_on(args, every=60, minutes=60)
    assert world.moves == [("n1", "n2")] * 4
