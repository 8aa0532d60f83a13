import pytest

from reserver.scheduling.bind import judge_bind
from reserver.scheduling.explain import MOST_NODES, ResourceAccount, explain
from tests.builders import NOW, node, pod, reservation, state_of

W1, W2, W3 = (node(f"worker-{number}", cpu="4") for number in (1, 2, 3))


def test_the_numbers_of_a_node_with_holds_are_told() -> None:
    asking = pod("a", cpu="2")
    state = state_of(W1, W2, reservation("r", cpu="2"), pod("b", node="worker-1", cpu="1"), asking)
    told = explain(asking, state, NOW)
    assert (told.pod, told.node, told.exempt, told.owns) == ("shop/a", "", False, ())
    assert told.nodes_without_holds == 1
    (account,) = told.nodes_with_holds
    assert (account.node, account.fits, account.is_seat) == ("worker-1", False, False)
    assert account.reservations == ("shop/store/r",)
    assert account.resources["cpu"] == ResourceAccount(
        requested_by_pod=2000, allocatable=4000, requested=1000, held_for_others=2000, free=1000
    )


def test_an_owners_seats_come_first_and_its_own_slot_counts_for_it() -> None:
    asking = pod("owner", cpu="2")
    holds = [
        reservation("others", node="worker-1", owners=("b",), cpu="1"),
        reservation("mine", node="worker-2", cpu="2"),
    ]
    told = explain(asking, state_of(W1, W2, W3, *holds), NOW)
    assert told.owns == ("shop/store/mine",)
    assert [(n.node, n.is_seat, n.fits) for n in told.nodes_with_holds] == [
        ("worker-2", True, True),
        ("worker-1", False, True),
    ]
    assert told.nodes_with_holds[0].resources["cpu"].held_for_others == 0


def test_a_hold_that_lacks_room_shows_as_less_than_nothing_free() -> None:
    hold = reservation("r", cpu="3")
    state = state_of(W1, hold, pod("b", node="worker-1", cpu="2"))
    told = explain(pod("a", cpu="1"), state, NOW)
    assert told.nodes_with_holds[0].resources["cpu"].free == -1000


@pytest.mark.parametrize("cpu", ["1", "2", "3", "4"])
def test_what_is_explained_is_what_bind_decides(cpu: str) -> None:
    state = state_of(W1, reservation("r", cpu="2"))
    told = explain(pod("a", cpu=cpu), state, NOW)
    decided = judge_bind(pod("a", cpu=cpu), "worker-1", state, NOW).refusal is None
    assert told.nodes_with_holds[0].fits == decided


def test_a_large_cluster_is_told_in_part_and_says_so() -> None:
    count = MOST_NODES + 5
    nodes = [node(f"n{number}", cpu="4") for number in range(count)]
    holds = [reservation(f"r{number}", node=f"n{number}", cpu="1") for number in range(count)]
    told = explain(pod("a", cpu="1"), state_of(*nodes, *holds), NOW)
    assert len(told.nodes_with_holds) == MOST_NODES
    assert told.truncated == 5


def test_system_critical_pods_are_told_that_holds_do_not_apply() -> None:
    told = explain(pod("a", priority=2_000_001_000), state_of(W1, reservation("r", cpu="1")), NOW)
    assert told.exempt
    assert told.nodes_with_holds[0].fits
