"""The pods of a PodGroup, which kube-scheduler asks for one after the other and binds together."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Controller, Pod
from reserver.scheduling import nomination
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.gangs import ATTEMPT_S
from reserver.scheduling.pending_pods import LEAST_SAMPLE
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import FilterVerdict, Nominate
from tests.builders import NOW, node, pod, reservation, rule, state_of

OURS = rule(controller=Controller("PodGroup", "training"))
W1, W2 = node("worker-1", cpu="4"), node("worker-2", cpu="4")
NAMES = ["worker-1", "worker-2"]


def member(name: str, cpu: str = "2", *, nominated: str = "", group: str = "training") -> Pod:
    return replace(pod(name, cpu=cpu, nominated=nominated), group=group)


A, B, C, D = (member(name) for name in "abcd")


def ask(one: Pod, state: State, names: list[str] = NAMES, now: float = NOW) -> FilterVerdict:
    """Filter as kube-scheduler does, and count the pod on the first node of the answer."""
    verdict = filter_nodes(one, names, state, now)
    if verdict.nodes:
        state.answered(one, verdict.nodes, now)
    return verdict


def nodes_of(one: Pod, state: State, names: list[str] = NAMES, now: float = NOW) -> list[str]:
    return list(ask(one, state, names, now).nodes)


def room_of_one() -> State:
    """Return a state with room for one pod next to the holds for others."""
    return state_of(W1, A, B, reservation("others", owners=("other",), cpu="2"))


# The count of a gang.


def test_each_slot_is_answered_to_one_pod_of_the_group() -> None:
    state = state_of(W1, W2, reservation("r", node="worker-1", slots=1, rules=(OURS,), cpu="4"))
    assert nodes_of(A, state) == ["worker-1"]
    assert nodes_of(B, state) == ["worker-2"]
    assert nodes_of(C, state, ["worker-1"]) == []


def test_seats_on_two_nodes_are_answered_one_at_a_time() -> None:
    holds = (reservation(f"r{n}", node=n, rules=(OURS,), cpu="4") for n in NAMES)
    state = state_of(W1, W2, *holds)
    assert [nodes_of(one, state) for one in (A, B, C)] == [["worker-1"], ["worker-2"], []]


def test_room_beside_holds_is_answered_to_as_many_as_fit() -> None:
    state = room_of_one()
    assert nodes_of(A, state, ["worker-1"]) == ["worker-1"]
    assert nodes_of(B, state, ["worker-1"]) == []


def test_where_nothing_is_held_kube_scheduler_counts_and_chooses() -> None:
    state = state_of(W1, W2, node("worker-3"), reservation("r", owners=("other",), cpu="1"))
    free = ["worker-2", "worker-3"]
    assert nodes_of(A, state, [*NAMES, "worker-3"]) == free
    assert nodes_of(B, state, [*NAMES, "worker-3"]) == free


def test_what_a_pod_takes_beyond_its_slot_counts_too() -> None:
    hold = reservation("r", slots=2, rules=(OURS,), cpu="1")
    state = state_of(W1, hold, reservation("others", owners=("other",), cpu="1"))
    first, second = member("a"), member("b")
    assert nodes_of(first, state, ["worker-1"]) == ["worker-1"]
    assert nodes_of(second, state, ["worker-1"]) == []


def test_another_group_and_pods_without_one_are_not_counted_against() -> None:
    state = room_of_one()
    ask(A, state)
    assert nodes_of(member("x", group="other"), state, ["worker-1"]) == ["worker-1"]
    assert nodes_of(pod("y", cpu="2"), state, ["worker-1"]) == ["worker-1"]


# When an attempt ends.


def test_a_pod_that_is_asked_for_again_begins_another_attempt() -> None:
    state = room_of_one()
    assert nodes_of(A, state, ["worker-1"]) == ["worker-1"]
    assert nodes_of(B, state, ["worker-1"]) == []
    assert nodes_of(A, state, ["worker-1"]) == ["worker-1"]


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ([("a", 0.0), ("b", 1.0)], False),
        ([("a", 0.0), ("b", 0.001)], True),
        ([("a", 0.0), ("b", 1.0), ("a", 1.001)], True),
        ([("c", 0.0), ("a", 0.001), ("b", 1.0), ("c", 1.001)], False),
    ],
    ids=["another first", "one after the other", "both again", "another first and a third"],
)
def test_who_is_asked_for_before_the_first_of_the_last_attempt_counts_against_it(
    asked: list[tuple[str, float]], *, fits: bool
) -> None:
    """Otherwise both pods get the same room, Bind refuses one, and the gang is half bound."""
    nodes = {"a": "worker-1", "b": "worker-2", "c": "worker-3"}
    holds = (reservation(n, node=n, owners=("other",), cpu="2") for n in nodes.values())
    state = state_of(W1, W2, node("worker-3", cpu="4"), A, B, C, *holds)
    for key, at in asked:
        one = {"a": A, "b": B, "c": C}[key]
        assert nodes_of(one, state, [nodes[key]], NOW + at) == [nodes[key]]
    later = NOW + max(asked[-1][1], 1.0) + 0.001
    assert bool(nodes_of(A, state, ["worker-2"], later)) is fits


def test_a_pod_that_was_refused_may_be_asked_for_again_in_the_same_attempt() -> None:
    """kube-scheduler asks for the nominated node first, and then for the others."""
    state = room_of_one()
    ask(A, state, ["worker-1"])
    assert nodes_of(B, state, ["worker-1"]) == []
    assert nodes_of(B, state, ["worker-1"]) == []


@pytest.mark.parametrize(("later", "fits"), [(ATTEMPT_S - 0.1, False), (ATTEMPT_S, True)])
def test_an_answer_counts_for_a_few_seconds(later: float, *, fits: bool) -> None:
    state = room_of_one()
    ask(A, state, ["worker-1"])
    assert bool(nodes_of(B, state, ["worker-1"], NOW + later)) is fits


def test_a_pod_that_is_gone_does_not_count() -> None:
    state = room_of_one()
    ask(A, state, ["worker-1"])
    state.pod_gone(A.name)
    assert nodes_of(B, state, ["worker-1"]) == ["worker-1"]


def test_a_pod_that_is_being_bound_counts_once() -> None:
    state = state_of(node("worker-1", cpu="6"), reservation("r", owners=("other",), cpu="2"))
    ask(A, state, ["worker-1"])
    state.assume(A, "worker-1", ())
    assert nodes_of(B, state, ["worker-1"]) == ["worker-1"]


# Bind.


def test_a_small_pod_that_is_bound_first_leaves_a_large_one_its_slot() -> None:
    holds = (
        reservation("large", slots=1, rules=(OURS,), cpu="3"),
        reservation("others", node="worker-1", owners=("other",), cpu="1"),
    )
    large, small = member("large", "3"), member("small", "1")
    state = state_of(node("worker-1", cpu="5"), *holds, large, small)
    assert nodes_of(large, state, ["worker-1"]) == nodes_of(small, state, ["worker-1"])
    for one in (small, large):
        state.gangs.drop(one)
        verdict = judge_bind(one, "worker-1", state, NOW)
        assert verdict.refusal is None
        assert len(verdict.claims) == (one is large)
        state.assume(one, "worker-1", verdict.claims)


# Seats that kube-scheduler has not looked at.


def wide(*pods: Pod) -> State:
    """Return a state with seats for three pods of the group, each on its own node."""
    seats = [f"seat-{number}" for number in (1, 2, 3)]
    holds = (reservation(name, node=name, rules=(OURS,), cpu="2") for name in seats)
    return state_of(W1, *(node(name, cpu="4") for name in seats), *holds, *pods)


def steer_of(verdict: FilterVerdict) -> Nominate:
    (effect,) = verdict.effects
    assert isinstance(effect, Nominate)
    return effect


def test_the_first_that_is_refused_is_sent_to_its_seat_after_all_others() -> None:
    steer = steer_of(ask(A, wide(A, B, C), ["worker-1"]))
    assert (steer.pod, steer.node) == (A, "seat-1")
    assert [(other.name.name, node) for other, node in steer.first] == [
        ("b", "seat-2"),
        ("c", "seat-3"),
    ]
    assert steer.last == ()


def test_those_that_were_answered_before_are_nominated_after_it() -> None:
    """Their nominations are taken back when the attempt fails; they are asked for first."""
    state = wide(A, B, C)
    assert nodes_of(A, state, ["worker-1", "seat-2"]) == ["seat-2"]
    steer = steer_of(ask(B, state, ["worker-1"]))
    assert (steer.pod, steer.node) == (B, "seat-1")
    assert steer.first == ((C, "seat-3"),)
    assert steer.last == ((A, "seat-2"),)


def test_who_is_nominated_for_a_seat_keeps_it() -> None:
    there = member("b", nominated="seat-1")
    steer = steer_of(ask(A, wide(A, there, C), ["worker-1"]))
    assert (steer.node, steer.first) == ("seat-2", ((C, "seat-3"),))


def test_more_pods_than_slots_are_not_nominated_for_the_same_one() -> None:
    steer = steer_of(ask(A, wide(A, B, C, D), ["worker-1"]))
    assert len({steer.node, *(node for _, node in steer.first)}) == 3
    assert len(steer.first) == 2


def test_a_pod_that_is_being_bound_is_not_sent_anywhere() -> None:
    state = wide(A, B, C)
    state.assume(B, "seat-2", ())
    assert [other for other, _ in steer_of(ask(A, state, ["worker-1"])).first] == [C]


def test_a_large_group_is_sent_to_its_seats_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of one call is bounded; each attempt comes further than the last."""
    monkeypatch.setattr(nomination, "MOST_TOGETHER", 1)
    state = wide(A, B, C)
    steer = steer_of(ask(A, state, ["worker-1"]))
    assert (steer.node, steer.first) == ("seat-1", ((B, "seat-2"),))
    for one in (replace(A, nominated_node="seat-1"), replace(B, nominated_node="seat-2")):
        state.pod_seen(one)
        assert nodes_of(one, state, [one.nominated_node]) == [one.nominated_node]
    assert steer_of(ask(C, state, ["worker-1"])).node == "seat-3"


def test_room_that_a_nominated_pod_waits_for_is_not_given_to_a_group_either() -> None:
    first = pod("first", cpu="1", priority=10, nominated="worker-1")
    state = state_of(W1, first, reservation("others", owners=("other",), cpu="1"))
    members = [member(name, "1") for name in "abc"]
    answers = [nodes_of(one, state, ["worker-1"]) for one in members]
    assert answers == [["worker-1"], ["worker-1"], []]


def test_a_pod_is_not_sent_to_where_others_of_its_group_go() -> None:
    """kube-scheduler has tried that node in this attempt, with the other pods counted."""
    names = [f"full-{number}" for number in range(LEAST_SAMPLE)]
    full = [node(name, cpu="1") for name in names]
    holds = [reservation(name, node=name, owners=("other",), cpu="1") for name in names]
    beside = reservation("others", owners=("other",), cpu="1")
    state = state_of(W1, *full, *holds, beside)
    assert nodes_of(member("a", "1"), state, ["worker-1"]) == ["worker-1"]
    verdict = ask(member("b", "1"), state, names)
    assert (verdict.nodes, verdict.effects) == ((), ())
