"""The pods that only holds keep out, and their buffers."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from reserver.cluster.pod import Controller, Pod
from reserver.scheduling.buffers import MOST_BUFFERS, Buffer, Simulation, lands
from reserver.scheduling.state import State
from tests.builders import NAMESPACE, node, pod, reservation, state_of
from tests.listening import Recorded

STRANGER = pod("stranger", cpu="3")
HELD = reservation("held", node="a", cpu="4")


def refused(state: State, *pods: Pod, names: tuple[str, ...] = ("a",)) -> State:
    for each in pods:
        state.pod_seen(dataclasses.replace(each, is_refused=True))
        state.judged(each, names, waits=True)
    return state


def buffers(state: State, numbers: Counter[str] | None = None) -> list[Buffer]:
    simulation = Simulation(state, numbers or Counter())
    for uid in state.waiting:
        simulation.consider(uid)
    found = map(simulation.buffer, simulation.in_order())
    return [each for each in found if each is not None]


def chosen(state: State, numbers: Counter[str] | None = None) -> list[str]:
    return sorted(each.pod.uid for each in buffers(state, numbers))


def test_a_pod_has_a_buffer_that_is_kept_from_the_nodes_where_only_holds_keep_it_out() -> None:
    state = refused(state_of(node("a", cpu="4"), node("b", cpu="2"), HELD), STRANGER)
    (buffer,) = buffers(state)
    assert (buffer.reservation, buffer.replicas, buffer.shunned) == (None, 1, ("a",))
    assert (buffer.pod.uid, buffer.pod.requests) == (STRANGER.uid, STRANGER.requests)


def test_as_many_have_buffers_as_an_autoscaler_believes_to_fit_the_largest_first() -> None:
    many = [pod(f"p{number}", cpu=cpu) for number, cpu in enumerate(("2", "3", "2", "5"))]
    state = refused(state_of(node("a", cpu="8"), reservation("all", node="a", cpu="8")), *many)
    assert chosen(state) == ["uid-p1", "uid-p3"]
    state.pod_seen(dataclasses.replace(many[3], node="b"))
    assert chosen(state) == ["uid-p0", "uid-p1", "uid-p2"]


def test_where_pods_fill_the_node_the_autoscaler_sees_it_too() -> None:
    state = refused(state_of(node("a", cpu="4"), HELD), STRANGER)
    state.pod_seen(pod("agent", node="a", cpu="2"))
    assert chosen(state) == []


def test_a_node_that_kube_scheduler_refused_by_itself_is_no_node_for_the_autoscaler() -> None:
    state = refused(state_of(node("a", cpu="4"), HELD), STRANGER, names=("b",))
    assert chosen(state) == []
    narrow = dataclasses.replace(STRANGER.constraints, node_terms=())  # None of them matches.
    state = state_of(node("a", cpu="4"), HELD)
    state.pod_seen(dataclasses.replace(STRANGER, is_refused=True, constraints=narrow))
    assert list(state.waiting) == [STRANGER.uid]
    assert chosen(state) == []


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(STRANGER, nominated_node="a"),
        dataclasses.replace(STRANGER, terminating=True),
        dataclasses.replace(STRANGER, has_resource_claims=True),
        dataclasses.replace(STRANGER, controller=Controller("DaemonSet", "agent")),
    ],
    ids=["room is being made", "is leaving", "devices", "one node only"],
)
def test_pods_to_which_a_node_is_of_no_use_have_none(other: Pod) -> None:
    assert chosen(refused(state_of(node("a", cpu="4"), HELD), other)) == []


@pytest.mark.parametrize("require", [True, False], ids=["lands only there", "or elsewhere"])
@pytest.mark.parametrize("where", ["", "a"], ids=["without a place", "on a node"])
def test_a_pod_that_waits_for_its_own_reservation_has_none(where: str, *, require: bool) -> None:
    own = reservation("own", owners=["stranger"], node=where, require=require, cpu="4")
    assert chosen(refused(state_of(node("a", cpu="4"), HELD, own), STRANGER)) == []


def test_a_namespace_has_so_many_and_its_reservations_come_first() -> None:
    many = [pod(f"p{number:03}", cpu="1") for number in range(MOST_BUFFERS + 5)]
    other = pod("other", namespace="other", cpu="1")
    held = reservation("all", node="a", cpu="200")
    state = refused(state_of(node("a", cpu="200", pods="500"), held), *many, other)
    found = chosen(state, Counter({NAMESPACE: 10}))
    assert found == ["uid-other", *(each.uid for each in many[: MOST_BUFFERS - 10])]


@pytest.mark.parametrize("cpu", ["4", "1000000"], ids=["all of the node", "more than any has"])
def test_what_waits_in_one_namespace_takes_no_buffer_from_another(cpu: str) -> None:
    greedy = [pod(f"p{number}", namespace="greedy", cpu=cpu) for number in range(20)]
    state = refused(state_of(node("a", cpu="4"), HELD), *greedy, STRANGER)
    assert STRANGER.uid in chosen(state)
    assert len(chosen(state)) == 1 + (cpu == "4")


@pytest.mark.parametrize(
    "never",
    [pod("p", cpu="5"), pod("p", cpu="9000000000000"), pod("p", cpu="1", gpu="1")],
    ids=["too large", "larger than any number", "what no node has"],
)
def test_a_pod_that_fits_on_no_node_has_no_buffer_whatever_it_asks_for(never: Pod) -> None:
    assert chosen(refused(state_of(node("a", cpu="4"), HELD), never)) == []


def test_a_pod_lands_from_when_it_was_let_through_until_it_is_bound_or_refused_otherwise() -> None:
    state = refused(state_of(node("a", cpu="4"), HELD), STRANGER)
    assert not lands(STRANGER, state)
    state.judged(STRANGER, ["b"], waits=False)
    assert lands(STRANGER, state)
    assert not lands(dataclasses.replace(STRANGER, uid="another"), state)
    state.pod_seen(STRANGER)
    assert not lands(STRANGER, state)
    state.pod_seen(dataclasses.replace(STRANGER, is_refused=True))
    state.judged(STRANGER, ["b"], waits=False)
    state.assume(STRANGER, "b", ())
    assert not lands(STRANGER, state)
    state.pod_seen(dataclasses.replace(STRANGER, node="b"))
    assert not lands(STRANGER, state)


def test_who_begins_to_wait_or_is_being_bound_is_told_once() -> None:
    heard = Recorded()
    state = State(heard)
    refused(state, STRANGER)
    state.judged(STRANGER, ["a"], waits=True)
    assert heard.refused == [STRANGER.uid]
    state.judged(STRANGER, ["a"], waits=False)
    state.judged(STRANGER, ["a"], waits=True)
    assert heard.refused == [STRANGER.uid] * 2
    assert heard.assumed == []
    state.assume(STRANGER, "b", ())
    assert heard.assumed == [(STRANGER.uid, "b")]
