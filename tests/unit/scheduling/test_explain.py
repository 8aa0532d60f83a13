from functools import partial

import pytest

from reserver.cluster.constraints import Taint
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.explain import (
    MOST_NODES,
    MOST_RESERVATIONS,
    PROMISED,
    Explanation,
    explain,
)
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.node_explanation import ResourceExplanation, ShownHold, explain_nodes
from reserver.scheduling.reasons import HELD
from tests.builders import NOW, node, pod, reservation, rule, state_of

USED_UP = "every slot is claimed; a slot is held again once its pod ends"

W1, W2, W3 = (node(f"worker-{number}", cpu="4") for number in (1, 2, 3))


def hold(key: str, on: str = "worker-1", left: float | None = None) -> ShownHold:
    expires = None if left is None else NOW + left
    return ShownHold(
        reservation=f"shop/store/{key}", node=on, expires_at=expires, seconds_left=left
    )


def counted(explained: Explanation) -> dict[str, int]:
    return {reason.reason: reason.nodes for reason in explained.reasons}


def test_nodes_are_counted_by_reason_in_the_manner_of_kube_scheduler() -> None:
    full = [pod(f"b{number}", node=f"worker-{number}", cpu="3") for number in (2, 3)]
    state = state_of(W1, W2, W3, reservation("r", cpu="3"), *full)
    explained = explain(pod("a", cpu="2"), state, NOW)
    assert explained.summary == (
        "0/3 nodes are available: 2 Insufficient cpu, 1 capacity held by reservations."
    )
    assert (explained.nodes, explained.available) == (3, 0)
    assert [reason.examples for reason in explained.reasons] == [
        ("worker-2", "worker-3"),
        ("worker-1",),
    ]


def test_a_node_counts_for_each_of_its_reasons_and_is_available_for_none() -> None:
    state = state_of(node("worker-1", cpu="1", memory="1Gi"), W2)
    explained = explain(pod("a", cpu="2", gpu="1", memory="2Gi"), state, NOW)
    assert counted(explained) == {
        "Insufficient nvidia.com/gpu": 2,
        "Insufficient memory": 2,
        "Insufficient cpu": 1,
    }
    assert explained.available == 0


def test_constraints_are_told_beside_resources_and_holds() -> None:
    closed = node("worker-1", taints=[Taint("gpu", "", "NoSchedule")], cpu="4")
    state = state_of(closed, W2, W3, reservation("r", node="worker-2", cpu="4"))
    explained = explain(pod("a", cpu="1"), state, NOW)
    assert explained.summary == (
        "1/3 nodes are available: 1 capacity held by reservations, "
        "1 node(s) had untolerated taint(s)."
    )


def test_pods_are_counted_in_kube_schedulers_words() -> None:
    state = state_of(node("worker-1", cpu="4", pods="1"), pod("b", node="worker-1"))
    assert explain(pod("a"), state, NOW).summary == "0/1 nodes are available: 1 Too many pods."


def test_a_pod_that_nothing_keeps_is_told_so() -> None:
    explained = explain(pod("a", cpu="1"), state_of(W1, W2), NOW)
    assert (explained.summary, explained.reasons) == ("2/2 nodes are available.", ())


def test_a_pod_that_is_bound_is_told_where() -> None:
    bound = pod("a", node="worker-1", cpu="3")
    explained = explain(bound, state_of(W1, W2, reservation("r", cpu="1"), bound), NOW)
    assert explained.summary == "it is on worker-1 already"
    assert (explained.node, explained.available, explained.reasons, explained.in_the_way) == (
        "worker-1",
        0,
        (),
        (),
    )


def test_what_is_in_the_way_is_told_with_the_time_that_it_has_left() -> None:
    holds = [
        reservation("for-ever", cpu="1"),
        reservation("soon", cpu="1", expires=NOW + 60),
        reservation("later", cpu="1", expires=NOW + 600),
        reservation("room-beside-it", node="worker-2", cpu="1", expires=NOW + 1),
    ]
    explained = explain(pod("a", cpu="2"), state_of(W1, W2, *holds), NOW)
    assert explained.in_the_way == (
        hold("soon", left=60),
        hold("later", left=600),
        hold("for-ever"),
    )


def test_what_is_held_where_the_pod_may_not_go_is_not_in_its_way() -> None:
    closed = node("worker-2", taints=[Taint("gpu", "", "NoSchedule")], cpu="4")
    holds = [reservation("here", cpu="3"), reservation("there", node="worker-2", cpu="3")]
    explained = explain(pod("a", cpu="2"), state_of(W1, closed, *holds), NOW)
    assert counted(explained)["capacity held by reservations"] == 2
    assert explained.in_the_way == (hold("here"),)


def test_what_a_pod_of_another_namespace_may_claim_says_so() -> None:
    of_pod = reservation("named", cpu="2")  # for the pod `owner`
    of_labels = reservation("labelled", cpu="2", owners=(), rules=[rule(app="web")])
    state = state_of(node("worker-1", cpu="4"), of_pod, of_labels)
    state.public_namespaces = frozenset({"shop"})

    def meant(name: str, **labels: str) -> list[str]:
        asking = pod(name, namespace="bank", labels=labels, cpu="2")
        return [each.for_namespace for each in explain(asking, state, NOW).in_the_way]

    assert meant("owner") == ["", "shop"]
    assert meant("other", app="web") == ["shop", ""]  # the labelled one comes first, by its name
    assert meant("other") == ["", ""]


def test_of_very_many_reservations_in_the_way_some_are_told_and_the_rest_counted() -> None:
    holds = [reservation(f"r{number}", cpu="10m") for number in range(MOST_RESERVATIONS + 7)]
    explained = explain(pod("a", cpu="4"), state_of(W1, *holds), NOW)
    assert (len(explained.in_the_way), explained.more_in_the_way) == (MOST_RESERVATIONS, 7)


def test_room_that_others_were_nominated_for_is_not_called_held() -> None:
    first = pod("first", priority=1000, nominated="worker-1", cpu="3")
    state = state_of(W1, reservation("r", cpu="1"), first)
    explained = explain(pod("a", cpu="1"), state, NOW)
    assert counted(explained) == {"room promised to pods that were nominated earlier": 1}
    assert explained.in_the_way == ()


def test_an_owner_that_requires_its_seat_is_told_that_other_nodes_are_none() -> None:
    state = state_of(W1, W2, W3, reservation("r", require=True, cpu="1"))
    explained = explain(pod("owner", cpu="1"), state, NOW)
    assert (explained.available, counted(explained)) == (
        1,
        {"not its seat, and it must land on one": 2},
    )
    assert explained.owns == (hold("r"),)


def test_the_numbers_of_a_node_with_holds_are_told() -> None:
    asking = pod("a", cpu="2")
    state = state_of(W1, W2, reservation("r", cpu="2"), pod("b", node="worker-1", cpu="1"), asking)
    explained = explain(asking, state, NOW)
    assert (explained.pod, explained.node, explained.exempt, explained.owns) == (
        "shop/a",
        "",
        False,
        (),
    )
    assert explained.nodes_without_holds == 1
    (shown,) = explained.nodes_with_holds
    assert (shown.node, shown.fits, shown.is_seat) == ("worker-1", False, False)
    assert shown.reservations == (hold("r"),)
    assert shown.resources["cpu"] == ResourceExplanation(
        requested_by_pod=2000, allocatable=4000, requested=1000, held_for_others=2000, free=1000
    )


def test_an_owners_seats_come_first_and_its_own_slot_counts_for_it() -> None:
    asking = pod("owner", cpu="2")
    holds = [
        reservation("others", node="worker-1", owners=("b",), cpu="1"),
        reservation("mine", node="worker-2", cpu="2"),
    ]
    explained = explain(asking, state_of(W1, W2, W3, *holds), NOW)
    assert explained.owns == (hold("mine", on="worker-2"),)
    assert [(n.node, n.is_seat, n.fits) for n in explained.nodes_with_holds] == [
        ("worker-2", True, True),
        ("worker-1", False, True),
    ]
    assert explained.nodes_with_holds[0].resources["cpu"].held_for_others == 0


def test_a_hold_that_lacks_room_shows_as_less_than_nothing_free() -> None:
    state = state_of(W1, reservation("r", cpu="3"), pod("b", node="worker-1", cpu="2"))
    explained = explain(pod("a", cpu="1"), state, NOW)
    assert explained.nodes_with_holds[0].resources["cpu"].free == -1000


@pytest.mark.parametrize("cpu", ["1", "2", "3", "4"])
def test_what_is_explained_is_what_bind_decides(cpu: str) -> None:
    state = state_of(W1, reservation("r", cpu="2"))
    explained = explain(pod("a", cpu=cpu), state, NOW)
    decided = judge_bind(pod("a", cpu=cpu), "worker-1", state, NOW).refusal is None
    assert explained.nodes_with_holds[0].fits == decided
    assert (explained.available == 1) == decided


def test_a_large_cluster_is_told_in_part_and_says_so() -> None:
    count = MOST_NODES + 5
    nodes = [node(f"n{number}", cpu="4") for number in range(count)]
    holds = [reservation(f"r{number}", node=f"n{number}", cpu="1") for number in range(count)]
    explained = explain(pod("a", cpu="1"), state_of(*nodes, *holds), NOW)
    assert len(explained.nodes_with_holds) == MOST_NODES
    assert explained.truncated == 5


def test_system_critical_pods_are_told_that_holds_do_not_apply() -> None:
    agent = pod("a", priority=2_000_001_000, namespace="kube-system")
    explained = explain(agent, state_of(W1, reservation("r", cpu="1")), NOW)
    assert explained.exempt
    assert explained.nodes_with_holds[0].fits


def test_unknown_nodes_are_not_explained() -> None:
    state = state_of(W1, reservation("r", cpu="1"))
    explained = explain_nodes(pod("a", cpu="1"), ["worker-1", "ghost"], state, NOW)
    assert [shown.node for shown in explained] == ["worker-1"]


def test_reservations_that_do_not_hold_for_a_pod_yet_are_named_with_the_reason() -> None:
    later = reservation("later", starts=NOW + 60, cpu="1")
    unplaced = reservation("unplaced", node="", cpu="64")
    holds = reservation("holds", cpu="1")
    state = state_of(W1, later, unplaced, holds, reservation("other", owners=("x",), cpu="64"))
    explained = explain(pod("owner", cpu="1"), state, NOW)
    assert [(each.reservation, each.reason) for each in explained.pending] == [
        ("shop/store/later", "NotStarted"),
        ("shop/store/unplaced", "NotPlaced"),
    ]
    assert all(each.message for each in explained.pending)
    assert [each.reservation for each in explained.owns] == ["shop/store/holds"]
    assert explain(pod("owner", node="worker-1", cpu="1"), state, NOW).pending == ()


def test_slots_that_others_have_and_a_release_are_named_with_the_reason() -> None:
    web = {"app": "web"}
    written = partial(reservation, owners=(), rules=[rule(app="web")], cpu="1")
    full = written("full", reusable=True)
    kept = written("kept", node="", placed={"worker-1": 2}, slots=1, refill_up_to=2)
    idle = written("idle", slots=2, release_if_idle=60)
    state = state_of(W1, full, kept, idle)
    state.ledger.past.end()
    state.ledger.advance(NOW)
    for name, claimed in (("a", full), ("b", kept), ("c", kept)):
        state.pod_seen(pod(name, node="worker-1", labels=web, claims=[claimed], cpu="1"))
    explained = explain(pod("owner", labels=web, cpu="1"), state, NOW + 61)
    said = {each.reservation: (each.reason, each.message) for each in explained.pending}
    assert {said[f"shop/store/{name}"] for name in ("full", "kept")} == {("Claimed", USED_UP)}
    assert said["shop/store/idle"][0] == "Idle"


@pytest.mark.parametrize("is_readable", [True, False])
def test_what_comes_back_is_told_as_filter_judges_it(*, is_readable: bool) -> None:
    """The pod of a claimed slot leaves room that is promised, or that may be gone."""
    claimed = reservation("r", reusable=True, cpu="1")
    owner = pod("owner", node="worker-1", claims=[claimed], cpu="1")
    first = pod("first", nominated="worker-1" if is_readable else "", priority=1, cpu="2")
    state = state_of(W1, claimed, owner, first)
    if not is_readable:
        state.unreadable.note(("shop", "broken"), "worker-1")
    asking = pod("a", cpu="2")
    assert not filter_nodes(asking, ["worker-1"], state, NOW).nodes
    explained = explain(asking, state, NOW)
    assert explained.available == 0
    assert counted(explained) == {PROMISED if is_readable else HELD.message: 1}
