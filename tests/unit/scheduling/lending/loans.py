"""Nodes whose held room is lent, their borrowers and their owners."""

from __future__ import annotations

from dataclasses import replace

from reserver.cluster.constraints import Constraints
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.fit import has_room
from reserver.scheduling.recall import RECALL_S, recalls_for_owners, recalls_for_room
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import FilterVerdict, Recall, WaitsFor
from tests.builders import BORROWER, NOW, node, pod, reservation, show, state_of

W1, W2 = node("worker-1", cpu="8"), node("worker-2", cpu="8")
LENT = reservation("lent", lends_below=100, cpu="4")
OWNER = pod("owner", cpu="4")


def borrower(name: str, cpu: str, *, priority: int = 0, on: str = "", created: str = "") -> Pod:
    made = pod(name, priority=priority, node=on, constraints=BORROWER, cpu=cpu)
    return replace(made, created=created)


def lending(*things: Node | Pod | Reservation) -> State:
    state = state_of()
    state.snapshot.lending.is_on = True
    show(state, *things)
    return state


def passes(asking: Pod, state: State, now: float = NOW) -> bool:
    """Return whether Filter passes worker-1; assert that Bind and explain agree."""
    has_room_there = has_room(asking, state.snapshot, state.snapshot.rows(["worker-1"]))[0]
    names = ["worker-1"] if has_room_there else []  # Else kube-scheduler does not name it.
    may = bool(filter_nodes(asking, names, state, now).nodes)
    is_bound = has_room_there and judge_bind(asking, "worker-1", state, now).refusal is None
    assert is_bound == may
    assert (explain(asking, state, now).available == 1) == may
    return may


def owner_asks(state: State, *names: str, asking: Pod = OWNER, now: float = NOW) -> FilterVerdict:
    verdict = filter_nodes(asking, names, state, now)
    if verdict.recalled:
        state.ledger.recall(verdict.recalled, now + RECALL_S)
    return verdict


def recalled_by(verdict: FilterVerdict) -> set[str]:
    (effect,) = verdict.effects
    assert isinstance(effect, Recall)
    assert not verdict.nodes
    assert verdict.waits_for is WaitsFor.SEAT
    return {each.name.name for each in effect.borrowers}


def short(state: State, now: float = NOW) -> dict[str, set[str]]:
    found = filter(None, recalls_for_room(state, lambda: now))
    return {going.node: {each.name.name for each in going.borrowers} for going in found}


ELSEWHERE = pod("owner", constraints=Constraints(node_selector=equals({"zone": "b"})), cpu="4")


def wanted_by(state: State, asking: Pod = OWNER, *, terminating: bool = False) -> set[str]:
    """Return the borrowers to evict for an owner for which kube-scheduler found no node."""
    state.pod_seen(replace(asking, is_unschedulable=True, terminating=terminating))
    (found,) = tuple(filter(None, recalls_for_owners(state, {}))) or (None,)
    return {each.name.name for each in found.borrowers} if found else set()
