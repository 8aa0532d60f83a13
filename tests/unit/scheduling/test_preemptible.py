"""Reservations that yield to pods of higher priority."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from tests.builders import NOW, node, pod, reservation, rule, state_of

W1 = node("worker-1", cpu="4")


def yielding(key: str, cpu: str, above: int = 0, owner: str = "somebody") -> Reservation:
    return reservation(key, owners=(owner,), yields_above=above, cpu=cpu)


def passes(asking: Pod, state: State) -> bool:
    """Return whether Filter passes; assert that Bind and explain agree."""
    may = bool(filter_nodes(asking, ["worker-1"], state, NOW).nodes)
    assert (judge_bind(asking, "worker-1", state, NOW).refusal is None) == may
    assert (explain(asking, state, NOW).available == 1) == may
    return may


@pytest.mark.parametrize(
    ("above", "priority", "may"),
    [(0, 1, True), (0, 0, False), (0, -1, False), (500, 500, False), (500, 501, True)],
)
def test_a_hold_yields_to_pods_of_a_priority_above_its_own(
    above: int, priority: int, *, may: bool
) -> None:
    state = state_of(W1, yielding("r", "3", above))
    assert passes(pod("a", priority=priority, cpu="3"), state) == may


def test_all_other_holds_are_kept_from_every_priority() -> None:
    state = state_of(W1, yielding("r", "2"), reservation("firm", owners=("b",), cpu="2"))
    assert passes(pod("a", priority=1000, cpu="2"), state)
    assert not passes(pod("a", priority=1000, cpu="3"), state)


def test_pods_are_evicted_for_room_that_yields() -> None:
    victim = pod("v", node="worker-1", cpu="2")
    state = state_of(W1, yielding("r", "2"), victim)
    asked = {"worker-1": ["uid-v"]}
    high, low = (pod("a", priority=priority, cpu="4") for priority in (1000, 0))
    assert judge_preemption(high, asked, state, NOW).nodes == ("worker-1",)
    assert judge_preemption(low, asked, state, NOW).nodes == ()


def test_its_own_slot_is_counted_once_for_an_owner_of_high_priority() -> None:
    state = state_of(W1, yielding("r", "2", owner="owner"), pod("b", node="worker-1", cpu="2"))
    owner = pod("owner", priority=1000, cpu="3")
    assert not judge_bind(owner, "worker-1", state, NOW).refusal  # Nothing is held for others.
    state.ledger.put(reservation("firm", owners=("b",), cpu="1"))
    assert judge_bind(owner, "worker-1", state, NOW).refusal


def statuses(state: State) -> dict[str, bool]:
    short_nodes = ShortNodes.of(state.snapshot)
    return {r.ref.key: short_nodes.status(r, state.ledger).is_backed for r, _ in state.ledger}


@pytest.mark.parametrize("first", ["firm", "soft"])
def test_what_has_yielded_is_not_backed_and_its_neighbours_are(first: str) -> None:
    holds = {"firm": reservation("firm", owners=("b",), cpu="2"), "soft": yielding("soft", "2")}
    second = next(key for key in holds if key != first)
    state = state_of(W1, holds[first], holds[second], pod("a", node="worker-1", cpu="2"))
    assert statuses(state) == {"firm": True, "soft": False}
    assert passes(pod("b", cpu="2"), state)  # The owner of the one that is firm.
    assert not passes(pod("somebody", cpu="2"), state)
    short_nodes = ShortNodes.of(state.snapshot)
    message = short_nodes.status(holds["soft"], state.ledger).message
    assert "preemptible: pods of a higher priority than 0 may take it" in message


def test_what_has_yielded_holds_again_when_there_is_room() -> None:
    taker = pod("a", node="worker-1", cpu="3")
    state = state_of(W1, yielding("r", "2"), taker)
    assert statuses(state) == {"r": False}
    state.pod_gone(taker.name)
    assert statuses(state) == {"r": True}
    assert not passes(pod("b", cpu="3"), state)


def test_a_hold_that_is_dropped_yields_nothing_more() -> None:
    soft = yielding("r", "2")
    state = state_of(W1, soft, reservation("firm", owners=("b",), cpu="2"))
    state.ledger.drop(soft.ref)
    assert passes(pod("a", priority=1000, cpu="2"), state)
    assert not passes(pod("a", priority=1000, cpu="3"), state)


@pytest.mark.parametrize(("app", "may"), [("web", False), ("", True)])
def test_a_hold_yields_to_no_pod_that_could_claim_it_but_has_another_seat(
    app: str, *, may: bool
) -> None:
    state = state_of()
    for name in ("worker-1", "worker-2"):
        state.node_seen(node(name, cpu="4"))
    state.ledger.put(reservation("named", owners=("web",), node="worker-2", cpu="4"))
    matching = reservation("matching", rules=[rule(app="web")], yields_above=0, cpu="4")
    state.ledger.put(matching)
    asking = pod("web", priority=10, labels={"app": app}, cpu="4")
    asking = replace(asking, nominated_node="worker-2")  # kube-scheduler has refused its seat.
    assert bool(filter_nodes(asking, ["worker-1"], state, NOW).nodes) is may
    assert (judge_bind(asking, "worker-1", state, NOW).refusal is None) is may
