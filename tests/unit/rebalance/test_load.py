import math
from collections.abc import Mapping

import pytest

from reserver.cluster.pod import PodName
from reserver.rebalance.load import (
    FORGOTTEN_S,
    NOTHING_SEEN,
    Departure,
    Memory,
    Standing,
    departed,
    load_of,
    on_the_way,
    seen,
    settled,
)
from reserver.rebalance.readings import FADES_S, Reading, Readings

WEB = PodName("shop", "web-0")
GONE = Departure("uid-web-0", "rs-web", "n1", {"cpu": 1000.0}, at=100.0)


def read(at: float, **cpu: float) -> Readings:
    """Return the usage of nodes over the last 15 seconds."""
    return Readings(nodes={name: Reading({"cpu": used}, at, 15.0) for name, used in cpu.items()})


def remembered(*rounds: Readings, memory: Memory = NOTHING_SEEN) -> Memory:
    for readings in rounds:
        memory = seen(memory, readings, {})
    return memory


def cpu(memory: Memory) -> Mapping[str, int]:
    return {name: round(known.usage["cpu"]) for name, known in memory.nodes.items()}


def successor(
    uid: str = "uid-web-1", node: str = "n2", created_at: float = 101.0, runs_at: float = 105.0
) -> Standing:
    return Standing(uid, "rs-web", node, created_at, runs_at)


def pods_read(at: float, used: float) -> Readings:
    return Readings(pods={WEB: Reading({"cpu": used}, at, 15.0)})


def test_the_first_reading_is_what_is_known() -> None:
    assert cpu(remembered(read(0, n1=4000))) == {"n1": 4000}


@pytest.mark.parametrize("every", [5, 15, 30])
def test_a_load_that_swings_each_minute_is_flat_however_often_it_is_read(every: int) -> None:
    swing = [
        read(at, n1=9000 if at // 60 % 2 else 1000, n2=1000 if at // 60 % 2 else 9000)
        for at in range(0, 3600, every)
    ]
    memory = remembered(*swing[: len(swing) // 2])
    for readings in swing[len(swing) // 2 :]:
        memory = seen(memory, readings, {})
        assert all(4400 < used < 5600 for used in cpu(memory).values())


def test_a_load_that_lasts_is_believed_within_minutes() -> None:
    calm = remembered(*(read(at, n1=1000) for at in range(0, 1800, 15)))
    busy = remembered(*(read(at, n1=9000) for at in range(1800, 2400, 15)), memory=calm)
    assert cpu(busy)["n1"] > 1000 + 8000 * (1 - math.exp(-600 / FADES_S)) - 1


def test_a_reading_that_was_seen_before_counts_once() -> None:
    once = remembered(read(0, n1=1000), read(15, n1=9000))
    assert remembered(read(15, n1=9000), memory=once) == once


def test_a_node_that_is_not_read_keeps_its_last_average_and_its_age() -> None:
    memory = remembered(read(0, n1=1000, n2=500), read(15, n1=1000))
    assert cpu(memory) == {"n1": 1000, "n2": 500}
    assert memory.nodes["n2"].at == 0


def test_readings_count_though_the_clock_was_set_back() -> None:
    """The old average was taken for fresh until the clock showed its time again."""
    memory = seen(remembered(read(4000, n1=9000)), pods_read(4000, 9000), {WEB: "uid"})
    memory = seen(remembered(read(400, n1=100), memory=memory), pods_read(400, 100), {WEB: "uid"})
    assert cpu(memory) == {"n1": 100}
    assert memory.pods[WEB][1].usage == {"cpu": 100}


def test_a_node_that_was_not_read_for_long_is_forgotten() -> None:
    memory = remembered(read(0, n1=1000, n2=500), read(FORGOTTEN_S + 1, n1=1000))
    assert cpu(memory) == {"n1": 1000}


def test_readings_of_a_pod_are_not_mixed_with_those_of_another_of_its_name() -> None:
    memory = seen(NOTHING_SEEN, pods_read(0, 4000), {WEB: "first"})
    memory = seen(memory, pods_read(15, 100), {WEB: "second"})
    assert memory.pods[WEB][1].usage == {"cpu": 100}


def test_readings_of_pods_that_are_gone_are_dropped() -> None:
    readings = Readings(pods={WEB: Reading({"cpu": 1.0}, 0)})
    assert seen(NOTHING_SEEN, readings, {}).pods == {}


def test_load_that_was_evicted_counts_no_more_at_once() -> None:
    memory = departed(remembered(read(100, n1=4000)), [GONE])
    assert cpu(memory) == {"n1": 3000}
    assert on_the_way(memory) == {"cpu": 1000}


def test_load_that_was_evicted_is_debited_until_a_reading_covers_only_the_time_since() -> None:
    memory = departed(remembered(read(100, n1=4000)), [GONE])  # The pod may take until 130 to end.
    memory = remembered(read(115, n1=4000), read(130, n1=4000), memory=memory)
    assert cpu(memory) == {"n1": 3000}
    memory = remembered(read(136, n1=3600), memory=memory)  # The pod ran for nine of 15 seconds.
    assert cpu(memory) == {"n1": 3000}
    memory = remembered(read(160, n1=3000), memory=memory)
    assert cpu(memory) == {"n1": 3000}


def test_a_pod_that_takes_longer_to_end_is_debited_for_longer() -> None:
    memory = departed(remembered(read(100, n1=4000)), [GONE])
    ending = Standing("uid-web-0", "rs-web", "n1", 0.0)
    memory = settled(memory, [ending], 140)
    memory = remembered(read(160, n1=4000), memory=memory)
    assert cpu(memory) == {"n1": 3000}


def test_a_successor_counts_on_its_node_before_the_metrics_show_it() -> None:
    memory = departed(remembered(read(100, n1=4000, n2=500)), [GONE])
    memory = settled(memory, [successor()], 105)
    assert cpu(memory) == {"n1": 3000, "n2": 1500}
    assert on_the_way(memory) == {}
    memory = remembered(read(120, n1=4000, n2=1500), memory=memory)
    assert cpu(memory) == {"n1": 3000, "n2": 1500}
    memory = remembered(read(150, n1=3000, n2=1500), memory=memory)
    assert cpu(memory) == {"n1": 3000, "n2": 1500}
    assert load_of(memory).moved == {"uid-web-1"}


def test_a_successor_that_does_not_run_yet_counts_until_it_does() -> None:
    memory = departed(remembered(read(100, n1=4000, n2=500)), [GONE])
    memory = settled(memory, [successor(runs_at=math.inf)], 105)
    memory = remembered(read(200, n2=500), memory=memory)
    assert cpu(memory)["n2"] == 1500
    memory = settled(memory, [successor(runs_at=210)], 220)
    memory = remembered(read(300, n2=1500), memory=memory)
    assert cpu(memory)["n2"] == 1500


def test_what_metrics_show_of_a_successor_that_is_seen_late_does_not_count_twice() -> None:
    before = remembered(*(read(at, n1=4000, n2=500) for at in range(0, 105, 15)))
    memory = departed(before, [GONE])
    memory = remembered(*(read(at, n2=1500) for at in range(120, 315, 15)), memory=memory)
    assert 900 < cpu(memory)["n2"] < 1300
    memory = settled(memory, [successor(runs_at=105)], 310)
    assert cpu(memory)["n2"] == pytest.approx(1500, abs=50)


@pytest.mark.parametrize(
    "other",
    [
        successor(created_at=99.0),
        successor(node=""),
        Standing("uid-db-0", "rs-db", "n2", 101.0),
    ],
    ids=["older", "pending", "another controller's"],
)
def test_only_a_new_pod_of_the_same_controller_on_a_node_is_a_successor(other: Standing) -> None:
    memory = settled(departed(remembered(read(100, n1=4000, n2=500)), [GONE]), [other], 105)
    assert on_the_way(memory) == {"cpu": 1000}


def test_two_pods_that_have_left_have_two_successors() -> None:
    second = GONE._replace(uid="uid-web-9", at=100.5)
    memory = departed(remembered(read(100, n1=4000, n2=500, n3=500)), [GONE, second])
    memory = settled(memory, [successor(), successor("uid-web-2", "n3")], 105)
    assert cpu(memory) == {"n1": 2000, "n2": 1500, "n3": 1500}
    assert cpu(settled(memory, [successor(), successor("uid-web-2", "n3")], 106)) == cpu(memory)


def test_a_move_that_nobody_completes_is_forgotten_in_the_end() -> None:
    memory = departed(remembered(read(100, n1=4000)), [GONE])
    assert settled(memory, [], 100 + FORGOTTEN_S - 1).moving
    assert not settled(memory, [], 100 + FORGOTTEN_S).moving
    assert not settled(memory, [], 100 - FORGOTTEN_S).moving  # The clock was set back.


def test_a_pod_without_controller_has_no_successor_and_takes_no_room() -> None:
    memory = departed(remembered(read(100, n1=4000)), [GONE._replace(owner="")])
    assert on_the_way(memory) == {}
