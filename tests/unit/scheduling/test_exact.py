"""Whatever sizes sums have, a hold is held and an owner has its seat: no clamp decides anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation, Written
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.dry_run import judge_set
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.node_explanation import explain_nodes
from reserver.scheduling.pending_pods import Waiting
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from tests.builders import (
    NOW,
    at,
    held,
    name,
    node,
    parts,
    pod,
    ref,
    requested,
    reservation,
    state_of,
    wake,
)

W1 = node("worker-1", cpu="4", memory="16Gi")
MOST_CORES = "9007199254740"
LOWEST = -(2**31)


def huge(key: str, slots: int = 1000, **more: Any) -> Reservation:
    """Return a reservation far beyond a cell: no spec may be so large, but a sum of specs may."""
    return reservation(key, owners=["x"], slots=slots, cpu=MOST_CORES, **more)


def passes(asking: Pod, state: State) -> bool:
    """Return whether Bind passes; assert that Filter, Preempt and explain agree."""
    may = judge_bind(asking, "worker-1", state, NOW).refusal is None
    assert bool(filter_nodes(asking, ["worker-1"], state, NOW).nodes) == may
    assert (explain(asking, state, NOW).available == 1) == may
    assert bool(judge_preemption(asking, {"worker-1": ["nobody"]}, state, NOW).nodes) == may
    return may


def backed(state: State, key: str) -> bool:
    written = state.ledger.get(ref(key))
    assert written is not None
    return ShortNodes.of(state.snapshot).status(written, state.ledger).is_backed


@pytest.mark.parametrize("slots", [1, 127, 128, 129, 256, 1000, 100_000])
@pytest.mark.parametrize("last", [False, True])
def test_what_yields_gives_no_firm_hold_away(slots: int, *, last: bool) -> None:
    state = state_of(W1)
    holds = [reservation("firm", owners=["f"], cpu="4"), huge("h", slots, yields_above=LOWEST)]
    for revision, each in enumerate(holds if last else reversed(holds), start=1):
        state.ledger.put(each, Written(revision, revision))
    assert not passes(pod("stranger", cpu="1"), state)
    assert passes(pod("f", cpu="4"), state)
    assert backed(state, "firm")


@pytest.mark.parametrize("slots", [127, 128, 129, 1000])
def test_holds_beyond_every_cell_yield_as_others_do(slots: int) -> None:
    state = state_of(W1, huge("h", slots, yields_above=5))
    assert passes(pod("higher", priority=6, cpu="4"), state)
    assert not passes(pod("equal", priority=5, cpu="1"), state)
    state.ledger.put(reservation("firm", owners=["f"], cpu="1"))
    assert not passes(pod("higher", priority=6, cpu="4"), state)


@pytest.mark.parametrize("slots", [128, 129, 1000])
def test_a_later_hold_gives_no_earlier_one_to_a_later_owner(slots: int) -> None:
    state = state_of(W1)
    for revision, each in enumerate(
        [
            reservation("a", owners=["a"], cpu="2"),
            reservation("b", owners=["b"], cpu="2"),
            huge("h", slots),
        ],
        start=1,
    ):
        state.ledger.put(each, Written(revision, revision))
    state.pod_seen(pod("critical", node="worker-1", cpu="2"))
    assert not passes(pod("b", cpu="2"), state)
    assert passes(pod("a", cpu="2"), state)
    assert (backed(state, "a"), backed(state, "b"), backed(state, "h")) == (True, False, False)


def test_own_seats_give_no_other_hold_to_their_owner() -> None:
    state = state_of(W1, reservation("firm", owners=["f"], memory="16Gi", require=True))
    for number in range(300):
        state.ledger.put(reservation(f"own-{number}", owners=["x"], memory="8Pi"))
    assert not passes(pod("x", memory="16Gi"), state)


def test_a_slot_beyond_every_cell_is_taken_out_of_it_exactly() -> None:
    state = state_of(W1, reservation("firm", owners=["f"], cpu="4"), huge("own", 1))
    state.ledger.put(huge("other", 100_000, yields_above=LOWEST))
    assert not passes(pod("x", cpu="1"), state)


def test_a_later_hold_backs_no_hold_that_lacks_its_room() -> None:
    state = state_of(W1, pod("p", node="worker-1", memory="16Gi"))
    state.ledger.put(reservation("firm", owners=["f"], memory="16Gi"), Written(1, 1))
    for revision in range(2, 200):
        later = reservation(f"later-{revision}", owners=["x"], memory="8Pi")
        state.ledger.put(later, Written(revision, revision))
        assert not backed(state, "firm")
    state.pod_gone(pod("p").name)
    assert backed(state, "firm")


@pytest.mark.parametrize("slots", [1, 1000, 100_000])
def test_what_goes_for_another_gives_nothing_else_away(slots: int) -> None:
    state = state_of(W1, pod("p", node="worker-1", cpu="3"))
    state.ledger.put(reservation("firm", owners=["f"], cpu="1"))
    going = huge("going", slots)
    state.ledger.put(going)
    before = state.snapshot.held.copy()
    wanted = reservation("going", owners=["x"], cpu="1")
    assert outcome(judge_set([wanted], state, at(NOW), going)).lacks
    placeless = reservation("going", node="", owners=["x"], cpu="1")
    assert outcome(judge_set([placeless], state, at(NOW), going)).lacks
    assert requested(state, "worker-1") == 3000
    assert (state.snapshot.held == before).all()
    state.ledger.drop(going.ref)
    assert held(state, "worker-1") == 1000
    assert not passes(pod("stranger", cpu="1"), state)


def test_what_goes_leaves_its_room_to_what_comes() -> None:
    state = state_of(W1, huge("other-node", node="worker-2"))
    going = reservation("going", cpu="3")
    state.ledger.put(going)
    for wanted in (reservation("going", cpu="4"), reservation("going", node="", cpu="4")):
        assert not outcome(judge_set([wanted], state, at(NOW), going)).lacks
    placed = reservation("placed", node="", slots=3, placed={"worker-1": 1, "gone": 2}, cpu="1")
    state.ledger.put(placed)
    assert outcome(judge_set([reservation("r", cpu="1")], state, at(NOW))).lacks
    assert not outcome(judge_set([reservation("r", cpu="1")], state, at(NOW), placed)).lacks
    assert state.ledger.placed(placed) == parts({"worker-1": 1, "gone": 2})


@pytest.mark.parametrize("size", ["1Ei", "2Ei", "4Ei", "16Ei"])
@pytest.mark.parametrize("victims", [1, 3, 5])
def test_victims_beyond_every_cell_make_no_room_that_is_held(size: str, victims: int) -> None:
    """A pod with `spec.nodeName` may have any request, until the kubelet refuses the pod."""
    state = state_of(W1, reservation("firm", owners=["f"], memory="16Gi"))
    for number in range(victims + 1):
        state.pod_seen(pod(f"v{number}", node="worker-1", memory=size))
    asking = pod("a", priority=10, memory="1Gi")
    evicted = [f"uid-v{number}" for number in range(victims)]
    assert not judge_preemption(asking, {"worker-1": evicted}, state, NOW).nodes
    state.pod_seen(asking)
    state.waiting[asking.uid] = Waiting(asking, (), {"worker-1": tuple(evicted)})
    assert wake(["worker-1"], state, NOW) == ()


def test_victims_beyond_every_cell_leave_an_owner_its_seat() -> None:
    state = state_of(W1, reservation("firm", owners=["f"], memory="16Gi"))
    for number in range(3):
        state.pod_seen(pod(f"v{number}", node="worker-1", memory="16Ei"))
    victims = {"worker-1": ["uid-v0", "uid-v1", "uid-v2"]}
    assert judge_preemption(pod("f", memory="16Gi"), victims, state, NOW).nodes


def test_explained_numbers_are_exact() -> None:
    state = state_of(W1, huge("h", 100_000))
    (shown,) = explain_nodes(pod("stranger", cpu="1"), ["worker-1"], state, NOW)
    cpu = shown.resources["cpu"]
    assert cpu.held_for_others == int(MOST_CORES) * 1000 * 100_000
    assert cpu.free == 4000 - cpu.held_for_others


def test_a_second_seat_on_a_node_costs_an_owner_nothing() -> None:
    """The first reservation is backed; the second was written without room for it."""
    state = state_of(W1)
    state.ledger.put(reservation("r1", owners=["a"], cpu="2", require=True), Written(1, 1))
    state.ledger.put(reservation("x", owners=["b"], cpu="2", require=True), Written(2, 2))
    state.pod_seen(pod("critical", node="worker-1", cpu="2"))
    assert passes(pod("a", cpu="2"), state)
    assert not passes(pod("b", cpu="2"), state)
    for revision, more in enumerate(
        [
            reservation("r2", owners=["a"], cpu="500m", require=True),
            reservation("r3", owners=["a"], memory="1Gi"),
            reservation("r4", owners=["a"], cpu="1", yields_above=5),
            replace(huge("r5"), owners=(name("a"),)),
        ],
        start=3,
    ):
        state.ledger.put(more, Written(revision, revision))
        assert passes(pod("a", cpu="2"), state)
        assert not passes(pod("a", cpu="2500m"), state)
        assert not passes(pod("b", cpu="2"), state)


def test_each_resource_is_covered_by_the_oldest_seats_that_have_it() -> None:
    state = state_of(W1)
    state.ledger.put(reservation("r1", owners=["a"], cpu="2"), Written(1, 1))
    state.ledger.put(reservation("r2", owners=["a"], memory="8Gi"), Written(2, 2))
    state.ledger.put(reservation("x", owners=["b"], cpu="2", memory="8Gi"), Written(3, 3))
    state.ledger.put(reservation("r3", owners=["a"], cpu="1", memory="1Gi"), Written(4, 4))
    state.pod_seen(pod("critical", node="worker-1", cpu="2", memory="8Gi"))
    assert passes(pod("a", cpu="2", memory="8Gi"), state)
    assert not passes(pod("a", cpu="2", memory="9Gi"), state)
    assert not passes(pod("a", cpu="3", memory="8Gi"), state)
    assert backed(state, "r1")
    assert backed(state, "r2")


def test_a_firm_seat_does_not_lose_its_turn_to_one_of_the_same_owner_that_yields() -> None:
    state = state_of(W1)
    state.ledger.put(reservation("r1", owners=["a"], yields_above=0, cpu="1"), Written(1, 1))
    state.ledger.put(reservation("x", owners=["b"], yields_above=0, cpu="3"), Written(2, 2))
    state.ledger.put(reservation("r2", owners=["a"], cpu="1"), Written(3, 3))
    state.pod_seen(pod("critical", node="worker-1", cpu="2"))
    assert passes(pod("a", cpu="2"), state)
