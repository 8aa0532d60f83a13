"""The events on pods, and their reasons."""

import pytest

from reserver.cluster.constraints import Taint
from reserver.cluster.pod import Pod
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.pod_events import PodEvent, event_for
from reserver.scheduling.state import State
from tests.builders import NOW, node, pod, reservation, state_of

W1, W2 = node("worker-1", cpu="4"), node("worker-2", cpu="4")
NAMES = ["worker-1", "worker-2"]


def event_of(asking: Pod, state: State, names: list[str] = NAMES) -> PodEvent | None:
    return event_for(asking, len(names), filter_nodes(asking, names, state, NOW), state)


def held(*keys: str) -> State:
    """Return two workers with these reservations, each of which holds a half of each worker."""
    cpu = f"{2000 // len(keys)}m"
    holds = [reservation(f"{k}-{n}", node=n, owners=("b",), cpu=cpu) for k in keys for n in NAMES]
    return state_of(W1, W2, *holds)


def test_a_pod_that_only_reservations_keep_is_told_which() -> None:
    asking = pod("a", cpu="3")
    event = event_of(asking, held("r"))
    assert event == PodEvent(
        asking,
        "HeldByReservations",
        "shop/store/r-worker-1, shop/store/r-worker-2",
        "2 nodes have room for it that is held for others by "
        "shop/store/r-worker-1, shop/store/r-worker-2",
    )


def test_of_many_reservations_the_cause_is_one_whichever_they_are() -> None:
    names = [f"n{number}" for number in range(9)]
    state = state_of(
        *(node(name, cpu="4") for name in names),
        *(reservation(f"r-{name}", node=name, cpu="4") for name in names),
    )
    first, second = (event_of(pod("a", cpu="1"), state, part) for part in (names[:5], names[4:]))
    assert first
    assert second
    assert first.cause == second.cause == "many reservations"
    assert "5 nodes have room" in first.message


def test_of_one_node_it_is_told_in_the_singular() -> None:
    event = event_of(pod("a", cpu="3"), held("r"), ["worker-1"])
    assert event
    assert (
        event.message == "1 node has room for it that is held for others by shop/store/r-worker-1"
    )


def test_a_pod_that_passes_is_told_nothing() -> None:
    assert event_of(pod("a", cpu="1"), held("r")) is None


def test_a_pod_that_is_sent_on_is_told_nothing_yet() -> None:
    names = [f"n{number}" for number in range(100)]
    nodes = [node(name, cpu="4") for name in names]
    holds = [reservation(f"r-{name}", node=name, cpu="4") for name in names]
    state = state_of(W1, *nodes, *holds)
    assert event_of(pod("a", cpu="1"), state, names) is None


def test_an_owner_that_is_steered_to_its_seat_is_told_nothing() -> None:
    state = state_of(W1, W2, reservation("seat", cpu="2"))
    assert event_of(pod("owner", cpu="2"), state, ["worker-2"]) is None


@pytest.mark.parametrize(
    ("require", "then"), [(False, "may land elsewhere"), (True, "waits for it")]
)
def test_an_owner_whose_seat_kube_scheduler_refuses_is_told_why_as_far_as_it_is_known(
    *, require: bool, then: str
) -> None:
    state = state_of(W1, W2, reservation("seat", cpu="2", require=require))
    owner = pod("owner", nominated="worker-1", cpu="2")
    event = event_of(owner, state, ["worker-2"])
    assert event
    assert event.reason == "SeatRefused"
    assert event.message == (
        "kube-scheduler refuses its seat on worker-1 (reservation shop/store/seat): "
        f"a constraint that Reserver does not judge; it {then}"
    )


def test_an_owner_with_resource_claims_is_told_that_its_seat_has_no_devices() -> None:
    state = state_of(W1, W2, reservation("seat", cpu="2"))
    event = event_of(pod("owner", devices=True, cpu="2"), state)
    assert event
    assert event.reason == "DevicesNotHeld"
    assert event.message == (
        "reservation shop/store/seat holds its resources on worker-1, but no devices: other pods "
        "may take those of its ResourceClaims before it comes"
    )
    assert event_of(pod("a", devices=True, cpu="1"), state) is None


def test_a_seat_that_is_refused_for_no_other_reason_is_refused_for_its_devices() -> None:
    state = state_of(W1, W2, reservation("seat", cpu="2"))
    owner = pod("owner", nominated="worker-1", devices=True, cpu="2")
    event = event_of(owner, state, ["worker-2"])
    assert event
    assert event.reason == "SeatRefused"
    assert "the devices of its ResourceClaims, which no reservation holds; it" in event.message


def test_the_constraint_that_the_seat_fails_is_named() -> None:
    closed = node("worker-1", taints=[Taint("gpu", "", "NoSchedule")], cpu="4")
    state = state_of(closed, W2, reservation("seat", cpu="2"))
    event = event_of(pod("owner", nominated="worker-1", cpu="2"), state, ["worker-2"])
    assert event
    assert "(reservation shop/store/seat): node(s) had untolerated taint(s); it" in event.message


def test_a_seat_that_is_too_small_or_taken_is_told_so() -> None:
    state = state_of(W1, W2, reservation("seat", cpu="2"), pod("b", node="worker-1", cpu="3"))
    event = event_of(pod("owner", nominated="worker-1", cpu="2"), state, ["worker-2"])
    assert event
    assert "Insufficient cpu" in event.message
