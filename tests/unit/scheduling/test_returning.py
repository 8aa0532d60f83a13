"""Room that returns to a reservation when a pod goes is never free in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.listener import NOBODY, Listener
from reserver.reservations.reservation import Reservation
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import HELD, filter_nodes
from reserver.scheduling.nomination import SHOWN_S
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Retry
from tests.builders import BORROWER, NOW, node, pod, ref, reservation, state_of, wake
from tests.listening import Recorded

W1 = node("worker-1", cpu="4")
SEAT = reservation("r", reusable=True, cpu="2")
WIDE = reservation("r", reusable=True, node="", placed={"worker-1": 1}, cpu="2")
REFILLED = reservation("r", node="", placed={"worker-1": 1, "worker-2": 1}, refill_up_to=2, cpu="2")
LENT = reservation("r", owners=("later",), lends_below=100, cpu="2")
LEAVING = pod("owner", node="worker-1", cpu="2")
OTHER = pod("other", node="worker-1", cpu="2")


def full(*holds: Reservation, first: Pod = LEAVING, listener: Listener = NOBODY) -> State:
    """Return a full node; kube-scheduler already sees that the first of its pods is gone."""
    state = State(listener)
    state.ledger.advance(NOW)
    state.is_complete = state.snapshot.lending.is_on = True
    for known in (W1, node("worker-2", cpu="2")):
        state.node_seen(known)
    for each in holds:
        state.ledger.put(each)
    state.pod_seen(replace(first, claims=frozenset(each.identity for each in holds)))
    state.pod_seen(OTHER)
    return state


def may(asking: Pod, state: State) -> bool:
    """Return whether Filter passes the node; assert that Bind agrees."""
    verdict = filter_nodes(asking, ["worker-1"], state, NOW)
    assert bool(verdict.nodes) == (judge_bind(asking, "worker-1", state, NOW).refusal is None)
    return bool(verdict.nodes)


BORROWED = replace(LEAVING, name=pod("b").name, constraints=BORROWER)


@pytest.mark.parametrize(
    ("hold", "leaving", "is_kept"),
    [
        pytest.param(SEAT, LEAVING, True, id="reusable"),
        pytest.param(WIDE, LEAVING, True, id="reusable, placed by Reserver"),
        pytest.param(REFILLED, LEAVING, True, id="refilled"),
        pytest.param(LENT, BORROWED, True, id="lent"),
        pytest.param(reservation("r", cpu="2"), LEAVING, False, id="claimed for good"),
        pytest.param(replace(SEAT, expires_at=NOW - 1), LEAVING, False, id="expired"),
        pytest.param(replace(SEAT, expires_at=NOW + 9), LEAVING, True, id="not expired yet"),
    ],
)
def test_a_stranger_gets_no_room_that_comes_back_before_the_end_of_its_pod_is_read(
    hold: Reservation, leaving: Pod, *, is_kept: bool
) -> None:
    state, stranger = full(hold, first=leaving), pod("stranger", cpu="1")
    assert may(stranger, state) == (not is_kept)
    state.pod_gone(leaving.name)
    assert may(stranger, state) == (not is_kept)


def test_what_a_reservation_does_not_hold_is_kube_schedulers_business() -> None:
    assert may(pod("stranger", memory="1Gi"), full(SEAT))
    assert not may(pod("stranger", cpu="1m"), full(SEAT))


def test_room_beside_what_comes_back_is_free() -> None:
    state = full(SEAT)
    state.pod_gone(OTHER.name)
    assert may(pod("stranger", cpu="2"), state)
    assert not may(pod("stranger", cpu="3"), state)


def test_room_beside_what_comes_back_is_free_where_another_node_has_none() -> None:
    state = full(SEAT)
    state.pod_gone(OTHER.name)
    state.ledger.put(reservation("s", node="worker-2", owners=("another",), cpu="2"))
    stranger = pod("stranger", cpu="2")
    assert filter_nodes(stranger, ["worker-1", "worker-2"], state, NOW).nodes == ["worker-1"]


def test_pods_of_a_group_share_the_room_beside_what_comes_back() -> None:
    state = full(SEAT)
    state.pod_gone(OTHER.name)
    first, second = (replace(pod(name, cpu="2"), group="g") for name in "ab")
    assert may(first, state)
    state.answered(first, ["worker-1"], NOW)
    assert not filter_nodes(second, ["worker-1"], state, NOW).nodes


def test_owners_of_other_slots_get_no_room_that_comes_back() -> None:
    younger = reservation("s", owners=("another",), cpu="1")
    state = full(SEAT)
    state.ledger.put(younger)  # On a full node: it has to wait.
    assert not may(pod("another", cpu="1"), state)
    state.pod_gone(OTHER.name)
    assert may(pod("another", cpu="1"), state)


def test_a_reservation_that_goes_gets_nothing_back() -> None:
    state = full(SEAT)
    state.ledger.drop(SEAT.ref)
    assert may(pod("stranger", cpu="1"), state)
    assert not state.snapshot.guarded.any()


def test_a_pod_that_needs_a_whole_node_is_sent_back_once_the_end_is_read() -> None:
    asking, state = pod("stranger", cpu="4"), full(SEAT)
    again = filter_nodes(asking, ["worker-1"], state, NOW).effects
    assert again == (Retry(asking, attempts=1, after_s=SHOWN_S),)


def test_the_next_owner_is_sent_to_its_slot_once_the_end_is_read() -> None:
    heard = Recorded()
    state = full(SEAT, listener=heard)
    again = replace(pod("owner", cpu="2"), uid="again")
    verdict = filter_nodes(again, ["worker-1"], state, NOW)
    assert (dict(verdict.refused), verdict.effects) == (
        {"worker-1": HELD},
        (Retry(again, attempts=1, after_s=SHOWN_S),),
    )
    heard.freed.clear()
    state.pod_gone(LEAVING.name)
    state.pod_seen(again)
    state.judged(again, ["worker-1"], waits=True)
    assert "worker-1" in heard.freed
    assert [effect.pod.uid for effect in wake(["worker-1"], state, NOW)] == ["again"]
    assert may(again, state)


def test_a_pod_is_sent_back_only_where_kube_scheduler_knows_more() -> None:
    state = full(SEAT)
    assert filter_nodes(pod("s", cpu="1"), ["worker-1"], state, NOW).effects
    assert not filter_nodes(pod("s", cpu="5"), ["worker-1"], state, NOW).effects  # Too little.
    state.pod_gone(LEAVING.name)
    assert not filter_nodes(pod("s", cpu="1"), ["worker-1"], state, NOW).effects


@pytest.mark.parametrize(
    ("hold", "asking", "helps"),
    [
        pytest.param(SEAT, pod("high", priority=9, cpu="2"), False, id="its slot comes back"),
        pytest.param(WIDE, pod("high", priority=9, cpu="2"), False, id="placed by Reserver"),
        pytest.param(REFILLED, pod("high", priority=9, cpu="2"), False, id="refilled"),
        pytest.param(
            replace(SEAT, yields_above=5), pod("high", priority=9, cpu="2"), True, id="it yields"
        ),
        pytest.param(
            reservation("r", owners=("owner", "high"), reusable=True, cpu="2"),
            pod("high", priority=9, cpu="2"),
            True,
            id="for itself",
        ),
        pytest.param(
            reservation("r", cpu="2"), pod("high", priority=9, cpu="2"), True, id="for good"
        ),
        pytest.param(
            reservation("r", slots=2, lends_below=5, cpu="1"),
            pod("high", priority=9, cpu="1"),
            True,
            id="for good, and another slot is lent",
        ),
    ],
)
def test_nobody_is_evicted_for_room_that_comes_back(
    hold: Reservation, asking: Pod, *, helps: bool
) -> None:
    state = full(hold)
    state.pod_seen(asking)
    verdict = judge_preemption(asking, {"worker-1": [LEAVING.uid]}, state, NOW)
    assert verdict.nodes == (("worker-1",) if helps else ())


def test_a_node_that_is_not_known_yet_is_no_place_while_something_comes_back_there() -> None:
    state = full(SEAT)
    state.node_gone("worker-1")
    assert not may(pod("stranger", cpu="1"), state)
    state.node_seen(Node(name="worker-1", allocatable={"cpu": 8000, "pods": 110}))
    assert may(pod("stranger", cpu="4"), state)
    assert not may(pod("stranger", cpu="5"), state)


def test_a_slot_that_is_placed_elsewhere_comes_back_elsewhere() -> None:
    state = full(REFILLED)
    assert state.snapshot.guarded[state.snapshot.rows(["worker-1", "worker-2"])].all()
    state.ledger.drop(ref("r"))
    assert not state.snapshot.guarded.any()


@pytest.mark.parametrize("outcome", ["confirmed", "failed"])
def test_nobody_takes_the_room_of_a_binding_that_may_still_fail(outcome: str) -> None:
    # kube-scheduler has ended the Bind call, or has restarted: it sees room for two other pods.
    seat, owner = reservation("r", cpu="2"), pod("owner", cpu="2")
    others = [pod("a", cpu="2"), pod("b", cpu="2")]
    state = state_of(W1, seat, owner, *others)
    state.assume(owner, "worker-1", (seat.identity,))
    fits = [filter_nodes(each, ["worker-1"], state, NOW).nodes for each in others]
    assert [*map(list, fits)] == 2 * [["worker-1"]]
    for other in others:
        if judge_bind(other, "worker-1", state, NOW).refusal is None:
            state.assume(other, "worker-1", ())
    (state.confirm if outcome == "confirmed" else state.forget)(owner.uid)
    amounts = state.snapshot.amounts("worker-1", "cpu")
    assert amounts.requested + amounts.held == amounts.allocatable


def test_no_pod_is_evicted_whose_binding_may_still_fail_for_the_room_of_its_slot() -> None:
    seat, owner = reservation("r", cpu="4"), pod("owner", cpu="4")
    high = pod("high", priority=9, cpu="4")
    state = state_of(W1, seat, owner, high)
    state.assume(owner, "worker-1", (seat.identity,))
    assert not judge_preemption(high, {"worker-1": [owner.uid]}, state, NOW).nodes
    state.confirm(owner.uid)
    assert judge_preemption(high, {"worker-1": [owner.uid]}, state, NOW).nodes


@pytest.mark.parametrize("is_gone_first", [False, True])
def test_the_peak_names_the_node_of_a_pod_that_went_before_its_binding_was_read(
    *, is_gone_first: bool
) -> None:
    seat, owner = replace(SEAT, owners=(pod("owner").name,)), pod("owner", cpu="2")
    state = state_of(W1, seat, owner)
    state.assume(owner, "worker-1", (seat.identity,))
    if is_gone_first:
        state.pod_gone(owner.name)
    state.confirm(owner.uid)
    state.pod_gone(owner.name)
    assert [claim.node for claim in state.ledger.peak(seat.ref).claims] == ["worker-1"]
