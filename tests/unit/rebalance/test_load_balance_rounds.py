"""LowNodeLoad over time: when a hot node counts, and that loads that swing move nothing twice."""

from collections.abc import Mapping

import pytest

from reserver.cluster.pod import PodName
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad
from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.load import (
    NOTHING_SEEN,
    Departure,
    Memory,
    Standing,
    departed,
    load_of,
    seen,
    settled,
)
from reserver.rebalance.load_comparison import BalanceInput
from reserver.rebalance.measured_load import NO_ROUNDS, AnomalyCount, Rounds, counted
from reserver.rebalance.readings import Reading, Readings
from reserver.rebalance.strategies.low_node_load import balance
from tests.unit.rebalance.loaded import NOW, World, cores, hot_and_cool, node, pod, pool

WAITS = pool(anomaly_condition=AnomalyCondition())


def hot_rounds(world: World, *is_hot: bool, every: float = 60.0) -> list[int]:
    """Return the number of moved pods in each round."""
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
        counts[calm] = world.rounds.anomalies["hot"].until is not None
    assert counts == {3: True, 4: False}


def test_a_node_that_counts_as_hot_for_longer_than_the_timeout_is_counted_anew() -> None:
    world = World({"hot": 95, "cool": 10})
    untils = []
    for number in range(8):
        world.read_at = NOW + 31 * number
        world.round(WAITS, world.rounds, now=world.read_at)
        untils.append(world.rounds.anomalies["hot"].until)
    assert untils == [None] * 5 + [NOW + 31 * 5 + 60] * 2 + [None]


def test_rounds_of_a_node_that_is_not_seen_for_longer_than_the_cache_are_forgotten() -> None:
    world = World({"hot": 95, "cool": 10})
    world.round(WAITS)
    anomalies = world.rounds.anomalies
    del world.used["hot"]
    for later, kept in ((299, anomalies), (301, {})):
        world.read_at = NOW + later
        world.round(WAITS, world.rounds, now=world.read_at)
        assert world.rounds.anomalies == kept


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

        def evict(leaving: ListedPod, target: str | None, reason: str, _: float | None) -> bool:
            assert target
            assert reason
            left.append(leaving)
            return True

        given = BalanceInput(
            nodes=(node("n1"), node("n2")),
            pods=by_node,
            load=load_of(self.memory),
            now=now,
            may_leave=lambda _: True,
            fits=lambda *_: True,
            evict=evict,
        )
        _, self.rounds = balance(args, given, self.rounds)
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
    """Without the average over readings, the test above would fail."""
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


@pytest.mark.parametrize(("now", "is_forgotten"), [(NOW + 59, False), (NOW - 3600, True)])
def test_a_node_counts_as_hot_for_its_timeout_even_if_the_clock_is_set_back(
    now: float, *, is_forgotten: bool
) -> None:
    hot = AnomalyCount(hot=6, until=NOW + 60, seen_at=NOW)
    after = counted(hot, AnomalyCondition(timeout_s=60), now, is_hot=False)
    assert (after == AnomalyCount()) is is_forgotten
