"""Nodes with holds on which pods may be evicted for a pod."""

from collections.abc import Sequence

import pytest

from reserver.cluster.constraints import Taint
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from tests.builders import NOW, name, node, pod, reservation, state_of

W1, W2 = node("worker-1", cpu="8"), node("worker-2", cpu="8")
HOLD = reservation("r", owners=("somebody",), cpu="4")
LOW, MIDDLE, HIGH = 100, 500, 1000


def victim(number: int, cpu: str, on: str = "worker-1") -> Pod:
    return pod(f"v{number}", node=on, priority=LOW, cpu=cpu)


def nodes(asking: Pod, state: State, **victims: Sequence[str]) -> tuple[str, ...]:
    """Return the answer to a Preempt call with victims by node, in short: w1 is worker-1."""
    by_node = {f"worker-{n[1:]}": [f"uid-{v}" for v in uids] for n, uids in victims.items()}
    return judge_preemption(asking, by_node, state, NOW).nodes


@pytest.mark.parametrize(
    ("things", "cpu", "victims", "allowed"),
    [
        pytest.param([victim(1, "4")], "4", ["v1"], True, id="beside the hold there is room"),
        pytest.param([victim(1, "4")], "5", ["v1"], False, id="the room stays held"),
        pytest.param([victim(1, "2"), victim(2, "2")], "4", ["v1"], False, id="too few go"),
        pytest.param([victim(1, "2"), victim(2, "2")], "4", ["v1", "v2"], True, id="all go"),
        pytest.param([victim(1, "4")], "1", ["ghost"], False, id="an unknown victim frees nothing"),
        pytest.param([victim(1, "4")], "4", ["v1", "v1"], True, id="named twice"),
        pytest.param(
            [pod("v2", node="worker-1", cpu="2"), victim(1, "2")],
            "4",
            ["v1", "v1"],
            False,
            id="named twice it frees its room once",
        ),
        pytest.param(
            [victim(1, "4"), victim(2, "4", on="worker-2")],
            "4",
            ["v2"],
            False,
            id="a victim elsewhere frees nothing here",
        ),
        pytest.param(
            [victim(1, "4"), pod("v2", node="worker-1", finished=True, cpu="4")],
            "4",
            ["v2"],
            False,
            id="a pod that has ended frees nothing",
        ),
        pytest.param([victim(1, "6")], "4", ["v1"], True, id="the hold was not backed before"),
        pytest.param([], "4", [], False, id="nobody to evict"),
    ],
)
def test_a_node_is_of_use_if_the_pod_fits_beside_the_holds_once_the_victims_are_gone(
    things: list[Pod], cpu: str, victims: list[str], *, allowed: bool
) -> None:
    state = state_of(W1, W2, HOLD, *things)
    answer = nodes(pod("a", priority=HIGH, cpu=cpu), state, w1=victims)
    assert answer == (("worker-1",) if allowed else ())


def test_nodes_where_nothing_is_held_are_none_of_our_business() -> None:
    state = state_of(W1, W2, HOLD, victim(1, "4"))
    asking = pod("a", priority=HIGH, cpu="100")
    assert nodes(asking, state, w1=["v1"], w2=["ghost"], w9=["ghost"]) == ("worker-2", "worker-9")


def test_only_what_is_held_is_compared() -> None:
    state = state_of(node("worker-1", cpu="8", memory="8Gi"), HOLD, victim(1, "4"))
    assert nodes(pod("a", priority=HIGH, cpu="1", memory="100Gi"), state, w1=["v1"]) == (
        "worker-1",
    )


def test_what_is_freed_beyond_a_hold_does_not_free_the_hold() -> None:
    state = state_of(W1, reservation("r", owners=("somebody",), cpu="2"), victim(1, "6"))
    assert nodes(pod("a", priority=HIGH, cpu="7"), state, w1=["v1"]) == ()


def test_the_victims_that_are_spared_are_told() -> None:
    state = state_of(W1, W2, HOLD, victim(1, "4"), victim(2, "1", on="worker-2"))
    asking = pod("a", priority=HIGH, cpu="6")
    verdict = judge_preemption(asking, {"worker-1": ["uid-v1"], "worker-2": ["uid-v2"]}, state, NOW)
    assert verdict.nodes == ("worker-2",)
    assert verdict.spared == {"worker-1": ("uid-v1",)}


def test_holds_do_not_apply_to_system_critical_pods() -> None:
    state = state_of(W1, HOLD, victim(1, "4"))
    agent = pod("a", priority=2_000_000_000, cpu="8", namespace="kube-system")
    assert nodes(agent, state, w1=["v1"]) == ("worker-1",)


def test_what_a_pod_takes_that_is_resized_is_counted_once() -> None:
    """The pod counts as bound with its request, and no pod is evicted for held room."""
    state = state_of(W1, reservation("r", owners=("b",), cpu="3"))
    bound = pod("a", node="worker-1", priority=HIGH, cpu="5")
    state.pod_seen(bound)
    for number in (1, 2):
        state.pod_seen(victim(number, "1"))
    assert nodes(bound, state, w1=["v1"]) == ()
    assert nodes(bound, state, w1=["v1", "v2"]) == ("worker-1",)
    assert nodes(bound, state, w2=["v1", "v2"]) == ()
    larger = pod("a", node="worker-1", priority=HIGH, cpu="6")
    state.pod_seen(larger)
    assert nodes(larger, state, w1=["v1", "v2"]) == ()


def test_a_hold_that_has_expired_is_in_nobodys_way() -> None:
    hold = reservation("r", owners=("somebody",), expires=NOW, cpu="4")
    assert nodes(pod("a", priority=HIGH, cpu="8"), state_of(W1, hold, victim(1, "8")), w1=["v1"])


OTHER = reservation("other", owners=("somebody",), cpu="3")


@pytest.mark.parametrize(
    ("things", "answer"),
    [
        # The seat is taken, so it is preempted for, and its own hold is not in the way.
        ([victim(1, "5")], ("worker-1", "worker-2")),
        # The seat is free: kube-scheduler is steered there, and nobody has to go anywhere.
        ([], ("worker-1",)),
        ([victim(1, "5"), OTHER], ("worker-1", "worker-2")),
        ([pod("stays", node="worker-1", cpu="6"), victim(1, "2"), OTHER], ("worker-2",)),
    ],
)
def test_an_owners_seats_are_its_own_and_nobody_is_evicted_elsewhere_while_one_is_free(
    things: list[Node | Pod | Reservation], answer: tuple[str, ...]
) -> None:
    seat = reservation("seat", owners=("owner",), cpu="4")
    state = state_of(W1, W2, seat, victim(2, "8", on="worker-2"), *things)
    owner = pod("owner", priority=HIGH, cpu="4")
    assert nodes(owner, state, w1=["v1"], w2=["v2"]) == answer


def test_an_owner_whose_seat_is_closed_to_it_may_have_pods_evicted_elsewhere() -> None:
    closed = node("worker-1", taints=[Taint("gpu", "", "NoSchedule")], cpu="8")
    seat = reservation("seat", owners=("owner",), cpu="4")
    state = state_of(closed, W2, seat, victim(2, "8", on="worker-2"))
    assert nodes(pod("owner", priority=HIGH, cpu="4"), state, w2=["v2"]) == ("worker-2",)


def test_for_an_owner_that_requires_its_seat_nobody_is_evicted_elsewhere() -> None:
    seat = reservation("seat", owners=("owner",), require=True, cpu="4")
    state = state_of(W1, W2, seat, victim(1, "8"), victim(2, "8", on="worker-2"))
    owner = pod("owner", priority=HIGH, cpu="4")
    assert nodes(owner, state, w1=["v1"], w2=["v2"]) == ("worker-1",)


def preempting(state: State, asking: Pod, *victims: str) -> None:
    """Let kube-scheduler preempt on worker-1: the victims go after our answer."""
    state.pod_seen(asking)
    verdict = judge_preemption(asking, {"worker-1": [f"uid-{v}" for v in victims]}, state, NOW)
    state.judged_preemption(asking, verdict.nodes, verdict.spared)
    assert verdict.nodes == ("worker-1",)
    for gone in victims:
        state.pod_gone(name(gone))


def passes(asking: Pod, state: State) -> bool:
    return bool(filter_nodes(asking, ["worker-1"], state, NOW).nodes)


@pytest.mark.parametrize(
    ("priority", "fits"), [(LOW, False), (MIDDLE, False), (HIGH, False), (HIGH + 1, True)]
)
def test_room_that_others_were_evicted_for_goes_to_none_of_its_priority_or_less(
    priority: int, *, fits: bool
) -> None:
    """kube-scheduler sees room for both pods, because it does not count the hold."""
    state = state_of(W1, HOLD, victim(1, "4"))
    first = pod("first", priority=HIGH, cpu="4")
    preempting(state, first, "v1")
    assert passes(first, state)
    assert passes(pod("second", priority=priority, cpu="4"), state) == fits


def test_victims_are_not_evicted_twice_for_room_that_is_promised() -> None:
    state = state_of(W1, HOLD, victim(1, "3"), victim(2, "1"))
    preempting(state, pod("first", priority=HIGH, cpu="3"), "v1")
    assert nodes(pod("second", priority=MIDDLE, cpu="3"), state, w1=["v2"]) == ()
    assert nodes(pod("second", priority=MIDDLE, cpu="1"), state, w1=["v2"]) == ("worker-1",)


def test_of_two_that_are_nominated_alike_the_first_goes_first_and_not_neither() -> None:
    state = state_of(W1, HOLD)
    first, second = (pod(n, nominated="worker-1", cpu="3") for n in ("first", "second"))
    state.pod_seen(first)
    state.pod_seen(second)
    assert (passes(first, state), passes(second, state)) == (True, False)


@pytest.mark.parametrize(
    "then",
    [
        pod("first", priority=HIGH, node="worker-2", cpu="4"),
        pod("first", priority=HIGH, nominated="worker-2", cpu="4"),
        None,
    ],
    ids=["landed elsewhere", "nominated elsewhere", "deleted"],
)
def test_room_is_promised_until_the_pod_is_known_to_go_elsewhere(then: Pod | None) -> None:
    state = state_of(W1, HOLD, victim(1, "4"))
    preempting(state, pod("first", priority=HIGH, cpu="4"), "v1")
    if then is None:
        state.pod_gone(name("first"))
    else:
        state.pod_seen(then)
    assert passes(pod("second", cpu="4"), state)


def test_a_nomination_that_was_taken_back_promises_nothing() -> None:
    state = state_of(W1, HOLD, pod("first", nominated="worker-1", cpu="4"))
    assert not passes(pod("second", cpu="4"), state)
    state.pod_seen(pod("first", cpu="4"))
    assert passes(pod("second", cpu="4"), state)


def test_a_preemption_that_came_to_nothing_promises_nothing() -> None:
    state = state_of(W1, HOLD, victim(1, "4"))
    first = pod("first", priority=HIGH, cpu="4")
    preempting(state, first, "v1")
    state.judged(first, ["worker-2"], waits=False)
    assert passes(pod("second", cpu="4"), state)


def test_an_owner_that_is_steered_to_its_seat_is_counted_once() -> None:
    seat = reservation("seat", owners=("owner",), cpu="4")
    state = state_of(W1, seat, pod("owner", priority=HIGH, nominated="worker-1", cpu="4"))
    assert passes(pod("a", cpu="4"), state)


def test_an_owner_does_not_wait_behind_those_who_are_nominated_onto_its_node() -> None:
    seat = reservation("seat", owners=("owner",), cpu="4")
    state = state_of(W1, seat, pod("first", priority=HIGH, nominated="worker-1", cpu="6"))
    assert passes(pod("owner", cpu="4"), state)
