import json
from dataclasses import replace

import numpy as np
import pytest

from reserver.cluster.capacity_matrix import REQUESTED
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.k8s.objects.limits import MOST_OFFERED
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode
from reserver.reservations.status import ShortNodes
from reserver.scheduling.fit import fits
from reserver.scheduling.neighbours import rows_of_pods
from reserver.scheduling.wake import Wake
from tests.builders import NOW, held, node, pod, requested, reservation, state_of


def taking(uid: str, requests: dict[str, int]) -> Pod:
    return Pod(name=PodName("shop", uid), uid=uid, requests=requests)


def cell(snapshot: Snapshot, layer: str, node_name: str, resource: str) -> int:
    row = snapshot.row(node_name)
    assert row is not None
    return int(getattr(snapshot, layer)[row, snapshot.columns[resource]])


def free(snapshot: Snapshot, node_name: str, resource: str) -> int:
    layers = (snapshot.allocatable, snapshot.requested, snapshot.held)
    row, column = snapshot.row(node_name), snapshot.columns[resource]
    allocatable, requested, held = (layer[row, column] for layer in layers)
    return int(allocatable - requested - held)


def test_a_pod_counts_on_one_node_and_once() -> None:
    snapshot = Snapshot()
    for worker in ("worker-1", "worker-2"):
        snapshot.set_node(node(worker, cpu="4"))
    snapshot.count(taking("uid", {"cpu": 1000}), "worker-1")
    snapshot.count(taking("uid", {"cpu": 1000}), "worker-1")
    assert cell(snapshot, "requested", "worker-1", "cpu") == 1000

    snapshot.count(taking("uid", {"cpu": 3000}), "worker-1")
    assert cell(snapshot, "requested", "worker-1", "cpu") == 3000

    snapshot.count(taking("uid", {"cpu": 3000}), "worker-2")
    assert cell(snapshot, "requested", "worker-1", "cpu") == 0
    assert cell(snapshot, "requested", "worker-2", "cpu") == 3000

    snapshot.uncount("uid")
    snapshot.uncount("uid")
    assert cell(snapshot, "requested", "worker-2", "cpu") == 0


def test_pods_that_are_counted_at_once_count_as_one_by_one() -> None:
    pods = [pod(f"p{n}", node="ab"[n % 2], cpu=str(n), memory="1Gi") for n in range(6)]
    at_once, one_by_one = Snapshot(), Snapshot()
    for snapshot in (at_once, one_by_one):
        snapshot.set_node(node("a", cpu="64"))
    at_once.count_all(pods)
    for each in pods:
        one_by_one.count(each, each.node)
    for name in "ab":
        for resource in ("cpu", "memory", "pods"):
            assert at_once.amounts(name, resource) == one_by_one.amounts(name, resource)
    at_once.uncount("uid-p2")
    assert at_once.amounts("a", "cpu").requested == 4000
    assert at_once.counted("uid-p3") == one_by_one.counted("uid-p3")


def test_what_a_selector_matches_follows_pods_that_come_move_hide_and_go() -> None:
    snapshot = Snapshot()
    for name in "ab":
        snapshot.set_node(node(name))
    web = replace(taking("uid", {}), labels={"app": "web"})

    def found() -> list[int]:
        return list(map(int, rows_of_pods("shop", equals({"app": "web"}), snapshot)))

    assert found() == []
    snapshot.count(web, "a")
    assert found() == [snapshot.row("a")]
    snapshot.move("uid", "b")
    assert found() == [snapshot.row("b")]
    with snapshot.unseen("uid"):
        assert found() == []
    assert found() == [snapshot.row("b")]
    snapshot.uncount("uid")
    assert found() == []


def test_a_row_is_released_with_the_last_thing_known_of_its_node_and_used_again_clean() -> None:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="4"))
    snapshot.count(taking("uid", {"cpu": 1000}), "worker-1")
    snapshot.set_held("worker-1", {"cpu": 2000})
    row = snapshot.row("worker-1")

    snapshot.remove_node("worker-1")
    snapshot.set_held("worker-1", {})
    assert snapshot.row("worker-1") == row
    snapshot.uncount("uid")
    assert snapshot.row("worker-1") is None

    snapshot.set_held("worker-2", {"gpu": 1})
    assert snapshot.row("worker-2") == row
    assert snapshot.name_of(row or 0) == "worker-2"
    assert not snapshot.has_node("worker-2")
    assert snapshot.requested.sum() == snapshot.allocatable.sum() == snapshot.held.sum() == 0


@pytest.mark.parametrize("amount", [0, 1])
def test_pods_that_come_and_go_leave_no_name_of_what_no_node_offers(amount: int) -> None:
    """Each copy of a node's totals, with each pod event, once had all names that ever were."""
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="4"))
    snapshot.count(taking("stays", {"cpu": 1000}), "worker-1")
    for number in range(20):
        snapshot.count(taking("uid", {"cpu": 1, f"evil.io/{number}": amount}), "worker-1")
    snapshot.uncount("uid")
    assert snapshot._totals[REQUESTED] == {"worker-1": {"cpu": 1000}}


def test_nodes_that_come_and_go_do_not_grow_the_matrix() -> None:
    snapshot = Snapshot()
    size = snapshot.allocatable.shape
    for number in range(1000):
        snapshot.set_node(node(f"worker-{number}", cpu="4"))
        snapshot.remove_node(f"worker-{number}")
    assert snapshot.allocatable.shape == size


def test_the_matrix_grows_past_its_first_size_and_keeps_every_cell() -> None:
    snapshot = Snapshot()
    for number in range(300):
        offered = {"cpu": 1000 * number, f"x.io/r{number}": 7}
        snapshot.set_node(Node(name=f"worker-{number}", allocatable=offered))
        snapshot.count(taking(f"uid-{number}", {"cpu": number}), f"worker-{number}")
        snapshot.set_held(f"worker-{number}", {"cpu": 2 * number + 1})
    for number in range(300):
        assert cell(snapshot, "allocatable", f"worker-{number}", "cpu") == 1000 * number
        assert cell(snapshot, "allocatable", f"worker-{number}", f"x.io/r{number}") == 7
        assert cell(snapshot, "requested", f"worker-{number}", "cpu") == number
        assert cell(snapshot, "held", f"worker-{number}", "cpu") == 2 * number + 1
    assert snapshot.node_count == len(snapshot.existing_rows()) == 300
    assert snapshot.has_holds.sum() == 300


def test_absurd_amounts_are_clamped_and_do_not_overflow() -> None:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", memory="4Gi"))
    for number in range(3):
        snapshot.count(taking(f"uid-{number}", {"memory": 2**62}), "worker-1")
    snapshot.set_held("worker-1", {"memory": 2**70})
    with np.errstate(all="raise"):
        assert free(snapshot, "worker-1", "memory") < 0


def test_rows_of_names_that_nobody_knows_are_minus_one() -> None:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="4"))
    assert snapshot.rows(["ghost", "worker-1", ""]).tolist() == [-1, 0, -1]
    assert snapshot.rows([]).tolist() == []


def test_holding_nothing_on_an_unknown_node_leaves_no_trace() -> None:
    snapshot = Snapshot()
    snapshot.set_held("ghost", {})
    snapshot.remove_node("ghost")
    assert snapshot.row("ghost") is None


# Columns.


def offering(name: str, first: int, number: int) -> Node:
    """Return a node that offers cpu and so many resources that no other node has."""
    own = {f"example.com/r{each}": 1 for each in range(first, first + number)}
    return Node(name=name, allocatable={"cpu": 4000, "pods": 110} | own)


def test_columns_of_what_nobody_offers_any_more_are_given_up() -> None:
    snapshot = Snapshot()
    for number in range(100):
        snapshot.set_node(offering(f"n{number}", 0, 2))
    before = snapshot.allocatable.copy()
    snapshot.set_node(offering("evil", 10, 2000))
    snapshot.remove_node("evil")
    assert snapshot.allocatable.shape[1] <= 16
    for name in ("cpu", "pods", "example.com/r0", "example.com/r1"):
        column = snapshot.columns[name]
        assert snapshot.allocatable[0, column] == {"cpu": 4000, "pods": 110}.get(name, 1)
    assert snapshot.allocatable.sum() == before.sum()


def test_a_node_that_offers_others_all_the_time_takes_no_more_columns() -> None:
    snapshot = Snapshot()
    snapshot.set_node(offering("n", 0, 5))
    widths = set()
    for turn in range(1000):
        snapshot.set_node(offering("evil", turn * 20, 20))
        widths.add(snapshot.allocatable.shape[1])
    assert max(widths) <= 128
    assert len(snapshot.columns) <= 8 + 2 * (2 + 5 + 20)


def test_what_is_taken_and_held_is_there_again_once_a_node_offers_it_again() -> None:
    state = state_of(
        node("n1", cpu="4", gpu="2"),
        node("n2", cpu="4"),
        pod("p", node="n1", gpu="1"),
        reservation("r", node="n1", gpu="1"),
    )
    snapshot = state.snapshot
    for _ in range(3):
        state.node_seen(node("n1", cpu="4"))
        assert not fits(pod("w", gpu="1"), snapshot).any()
        state.node_seen(offering("other", 0, 90))
        state.node_gone("other")  # The column is given up.
        assert "nvidia.com/gpu" not in snapshot.columns
        state.node_seen(node("n1", cpu="4", gpu="2"))
        assert requested(state, "n1", "nvidia.com/gpu") == held(state, "n1", "nvidia.com/gpu") == 1


def test_a_row_is_short_of_the_right_resource_whatever_came_and_went_before() -> None:
    state = state_of(offering("gone", 0, 20), node("n1", cpu="4", memory="1Gi"))
    state.node_gone("gone")
    state.node_seen(node("n2", cpu="4", gpu="1"))
    state.ledger.put(reservation("r", node="n2", gpu="3"))
    assert ShortNodes.of(state.snapshot).by_node == {"n2": {"nvidia.com/gpu": 2}}


def test_who_is_woken_step_by_step_gets_what_is_free_though_columns_change() -> None:
    state = state_of(offering("gone", 0, 40), node("n1", cpu="4", gpu="1"))
    for uid in ("a", "b"):
        one = pod(uid, cpu="3", gpu="1")
        state.pod_seen(one)
        state.judged(one, ["n1"], waits=True)
    waking = Wake(["n1"], state, NOW)
    state.node_gone("gone")
    assert waking.judge("uid-a") is not None
    assert waking.judge("uid-b") is None


def test_a_node_may_offer_so_many_resources_and_its_own_come_first() -> None:
    names = {f"a.example.com/r{number:05}": "1" for number in range(5000)}
    native = {"cpu": "4", "memory": "1Gi", "pods": "110", "hugepages-2Mi": "0"}
    written = {"metadata": {"name": "n"}, "status": {"allocatable": names | native}}
    offered = decode(NodeObject, json.dumps(written).encode()).value().allocatable
    assert len(offered) == MOST_OFFERED
    assert native.keys() <= offered.keys()
