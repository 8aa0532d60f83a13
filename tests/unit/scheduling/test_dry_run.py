from collections.abc import Sequence

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.constraints import NodeTerm, PodTerm
from reserver.cluster.labels import equals
from reserver.cluster.node import HOSTNAME
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.scheduling.dry_run import judge_set
from tests.builders import (
    NAMESPACE,
    NOW,
    at,
    demanding,
    name,
    node,
    pod,
    reservation,
    rule,
    state_of,
)

NODES = (node("worker-1", cpu="4", memory="8Gi"), node("worker-2", cpu="4", memory="8Gi"))


@pytest.mark.parametrize(
    ("wanted", "lacking"),
    [
        ([reservation("a", cpu="1")], {}),
        ([reservation("a", cpu="1"), reservation("b", node="worker-2", cpu="4")], {}),
        ([reservation("a", cpu="2")], {0: False}),  # 3 of 4 are taken or held.
        ([reservation("a", cpu="1"), reservation("b", cpu="1")], {1: False}),
        ([reservation("a", cpu="2"), reservation("b", cpu="1")], {0: False}),
        ([reservation("a", cpu="1", slots=5)], {0: True}),
        ([reservation("a", node="worker-2", cpu="3", slots=1)] * 2, {1: True}),
        ([reservation("a", cpu="5")], {0: True}),
        ([reservation("a", memory="9Gi")], {0: True}),
        ([reservation("a", gpu="1")], {0: True}),
        ([reservation("a", node="gone", cpu="1")], {0: True}),
        ([reservation("a", cpu="1", memory="8Gi")], {}),
    ],
)
def test_all_that_is_asked_for_has_to_be_free_beside_the_others(
    wanted: Sequence[Reservation], lacking: dict[int, bool]
) -> None:
    state = state_of(*NODES, pod("p", node="worker-1", cpu="1"), reservation("held", cpu="2"))
    assert {
        lack.at: lack.never for lack in outcome(judge_set(wanted, state, at(NOW))).lacks
    } == lacking


def test_what_goes_makes_room_for_what_comes() -> None:
    old = reservation("old", cpu="3")
    state = state_of(*NODES, old, pod("p", node="worker-1", cpu="1"))
    assert outcome(judge_set([reservation("old", cpu="2")], state, at(NOW))).lacks
    assert not outcome(judge_set([reservation("old", cpu="2")], state, at(NOW), old)).lacks
    assert outcome(judge_set([reservation("old", cpu="4")], state, at(NOW), old)).lacks


def test_what_has_expired_makes_room() -> None:
    state = state_of(*NODES, reservation("old", cpu="4", expires=NOW + 1))
    assert outcome(judge_set([reservation("new", cpu="4")], state, at(NOW))).lacks
    assert not outcome(judge_set([reservation("new", cpu="4")], state, at(NOW + 1))).lacks


def test_nobody_sees_a_set_that_is_being_judged_and_what_comes_in_between_does_no_harm() -> None:
    state = state_of(*NODES)
    wanted = [reservation(f"r{number}", cpu="2") for number in range(3)]
    before = state.snapshot.requested.copy()
    steps = judge_set(wanted, state, at(NOW))
    next(steps)
    next(steps)
    assert (state.snapshot.requested == before).all()
    state.snapshot.remove_node("worker-1")
    assert {lack.at for lack in outcome(steps).lacks} == {2}  # As it was in the beginning.
    assert {lack.at for lack in outcome(judge_set(wanted, state, at(NOW))).lacks} == {0, 1, 2}


def test_time_passes_while_a_set_is_judged() -> None:
    """A hold that starts meanwhile has its room; a hold that ends meanwhile leaves it."""
    soon = reservation("soon", cpu="4", starts=NOW + 1, expires=NOW + 2)
    state, now = state_of(*NODES, soon), NOW
    wanted = [reservation("a", cpu="4"), reservation("b", node="worker-2", cpu="4")]
    steps = judge_set(wanted, state, lambda: now)
    next(steps)
    now = NOW + 1
    assert {lack.at for lack in outcome(steps).lacks} == {0}
    assert state.ledger.phase(soon.ref) is Phase.ACTIVE
    now = NOW + 2
    assert not outcome(judge_set(wanted, state, lambda: now)).lacks


@pytest.mark.parametrize("size", range(40, 104))
def test_nodes_that_join_and_leave_while_a_set_is_judged_do_no_harm(size: int) -> None:
    """Rows are used up at 64, 80 and 100 nodes; the row of a removed node is used again."""
    state = state_of(*(node(f"n{number}", cpu="4", labels={"zone": "a"}) for number in range(size)))
    here = demanding(node_terms=(NodeTerm(equals({"zone": "a"})),))
    wanted = [reservation(f"r{n}", node="", cpu="4", placement=here) for n in range(20)]
    steps, came = judge_set(wanted, state, at(NOW)), 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            verdict = done.value
            break
        state.node_gone(f"n{size - 1 - came}")
        state.node_seen(node(f"new{came}", cpu="4", labels={"zone": "b"}))
        came += 1
    assert not verdict.lacks
    labels = [known.labels for r in verdict.reservations if (known := state.node(r.placed[0].node))]
    assert labels == [{"zone": "a"}] * 20


def test_a_node_whose_row_is_handed_on_does_not_take_the_labels_of_the_next() -> None:
    """Its taint or its label would make a place of a node that has none, or the other way round."""
    state = state_of(node("n1", cpu="4", labels={"zone": "b"}), node("n2", cpu="4"))
    here = demanding(node_terms=(NodeTerm(equals({"zone": "a"})),))
    wanted = [reservation("first", node="n2", cpu="1"), reservation("r", node="", placement=here)]
    steps = judge_set(wanted, state, at(NOW))
    next(steps)
    row = state.snapshot.row("n1")
    state.node_gone("n1")
    state.node_seen(node("new", cpu="4", labels={"zone": "a"}))
    assert state.snapshot.row("new") == row
    assert {lack.at for lack in outcome(steps).lacks} == {1}


WEB = rule(app="web")
APART = demanding(
    anti_affinity=(PodTerm(equals({"app": "web"}), HOSTNAME, frozenset({NAMESPACE})),)
)
HOSTS = [node(f"n{number}", cpu="4", labels={HOSTNAME: f"n{number}"}) for number in range(40)]


def apart(key: str, slots: int) -> Reservation:
    return reservation(key, node="", owners=(), rules=[WEB], slots=slots, placement=APART, cpu="4")


def test_what_is_found_in_many_steps_has_its_room_in_the_last_one() -> None:
    state = state_of(*HOSTS)
    steps, came = (
        judge_set([apart("a", 20), reservation("b", node="n9", cpu="4")], state, at(NOW)),
        0,
    )
    while True:
        try:
            next(steps)
        except StopIteration as done:
            verdict = done.value
            break
        cpu = state.snapshot.requested[:, state.snapshot.columns["cpu"]]
        assert cpu.sum() == 4000 * came  # The trial is not visible.
        for number in range(came, min(came + 5, 9)):  # The nodes of the first slots.
            state.pod_seen(pod(f"p{number}", node=f"n{number}", cpu="4"))
            came += 1
    assert not verdict.lacks
    chosen = dict(verdict.reservations[0].placed)
    assert len(chosen) == sum(chosen.values()) == 20
    rows = state.snapshot.rows([*chosen, "n9"])
    assert not state.snapshot.requested[rows].any()


def test_who_finds_no_room_because_others_are_always_faster_is_told_so() -> None:
    state, number = state_of(*NODES), 0
    steps = judge_set([reservation("a", node="", cpu="4")], state, at(NOW))
    while True:
        try:
            next(steps)
        except StopIteration as done:
            (lack,) = done.value.lacks
            break
        state.pod_gone(name("p"))
        state.pod_seen(pod("p", node=f"worker-{1 + number % 2}", cpu="1"))
        number += 1
    assert lack.message.endswith("try again")
