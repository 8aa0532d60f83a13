"""Calls on reservations with many owners, on many nodes: work is counted, not timed."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

import pytest

from reserver.cluster.labels import Requirement, Selector, equals
from reserver.cluster.pod import Pod, PodName
from reserver.reservations.node_holds import NodeHolds
from reserver.reservations.owner import OwnerRule
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.explain import explain
from reserver.scheduling.filter import ANSWER_LIMIT, filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Nominate
from tests.builders import NAMESPACE, NOW, node, pod, rule
from tests.unit.scheduling.wide import NODES, WEB, Count, counting, crowd, everywhere


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Return a count of comparisons of an owner entry with a pod."""
    return counting(monkeypatch, OwnerRule, "matches")


def selecting(number: int) -> list[OwnerRule]:
    return [rule(app=f"a{each}") for each in range(number)]


def lacking(number: int) -> list[OwnerRule]:
    """Return rules that no index finds: each must be compared."""
    keys = (f"k{each}" for each in range(number))
    selectors = (Selector((Requirement(key, "Exists"),)) for key in keys)
    return [OwnerRule(namespace=NAMESPACE, selector=each) for each in selectors]


STRANGERS = {
    "of the same namespace": pod("stranger", cpu="2"),
    "of another one": replace(pod("stranger", cpu="2"), name=PodName("other", "stranger")),
    "with labels": pod("stranger", cpu="2", labels={"app": "other", "tier": "a17"}),
    "nominated": pod("stranger", cpu="2", nominated="n1"),
}
CALLS: dict[str, Callable[[Pod, State], object]] = {
    "Filter": lambda one, state: filter_nodes(one, NODES, state, NOW),
    "Bind": lambda one, state: judge_bind(one, "n1", state, NOW),
    "Preempt": lambda one, state: judge_preemption(one, {n: ["x"] for n in NODES}, state, NOW),
    "explain": lambda one, state: explain(one, state, NOW),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.parametrize("yields", [None, -5])
def test_owners_are_judged_once_for_a_call_however_many_nodes_there_are(
    asked: Count, call: str, who: str, yields: int | None
) -> None:
    state = crowd(everywhere(lacking(50), yields_above=yields))
    state.pod_seen(STRANGERS[who])
    asked.calls = 0
    CALLS[call](STRANGERS[who], state)
    assert asked.calls <= 10 * 50  # Not 50 × 300.


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("labels", [{}, {"app": "a7"}, {"app": "other"}])
def test_of_many_selectors_only_those_are_asked_that_may_match(
    asked: Count, call: str, labels: dict[str, str]
) -> None:
    state = crowd(everywhere(selecting(1000)))
    one = pod("w", cpu="2", labels=labels)
    state.pod_seen(one)
    asked.calls = 0
    CALLS[call](one, state)
    assert asked.calls <= 10


def test_a_rule_that_is_found_by_one_of_several_labels_still_matches() -> None:
    both = OwnerRule(namespace=NAMESPACE, selector=equals({"app": "web", "tier": "front"}))
    state = crowd(everywhere([*selecting(5), both]))
    own = pod("w", cpu="2", labels={"app": "web", "tier": "front"})
    assert filter_nodes(own, NODES, state, NOW).nodes == NODES[:ANSWER_LIMIT]
    assert not filter_nodes(replace(own, labels={"app": "web"}), NODES, state, NOW).nodes


def test_whoever_is_nominated_is_asked_for_its_seat_there_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    for number in range(50):
        other = pod(f"w-{number}", controller=WEB, priority=5, nominated=f"n{number}", cpu="1")
        state.pod_seen(other)
    found: list[Reservation] = []
    seats = LedgerView.seats

    def noting(self: LedgerView, *args: Any, **kwargs: Any) -> tuple[Reservation, ...]:
        found.extend(seats(self, *args, **kwargs))
        return seats(self, *args, **kwargs)

    monkeypatch.setattr(LedgerView, "seats", noting)
    assert not filter_nodes(pod("stranger", cpu="2"), NODES, state, NOW).nodes
    assert [seat.node for seat in sorted(found, key=lambda seat: NODES.index(seat.node))] == (
        NODES[:50]
    )


# An owner with seats on many nodes.


def test_an_owner_is_judged_on_the_seats_that_were_named(monkeypatch: pytest.MonkeyPatch) -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    own = pod("w", controller=WEB, cpu="1")
    later = counting(monkeypatch, NodeHolds, "later")
    verdict = filter_nodes(own, ["x", "n7", "n250", "y"], state, NOW)
    assert verdict.nodes == ["n7", "n250"]
    assert later.calls == 2


def test_each_further_seat_of_an_owner_costs_its_call_the_same() -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    own = pod("w", controller=WEB, cpu="1")
    filter_nodes(own, NODES, state, NOW)
    few, many = (lines(partial(filter_nodes, own, NODES[:most], state, NOW)) for most in (100, 300))
    assert many < 3.3 * few


def test_a_seat_on_one_node_is_looked_up_however_many_nodes_there_are() -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    own = pod("w", controller=WEB, cpu="1")
    assert [seat.node for seat in state.ledger.seats(own, ("n7",))] == ["n7"]
    assert lines(lambda: state.ledger.seats(own, ("n7",))) < len(NODES)


def lines(call: Callable[[], object]) -> int:
    """Return the number of lines of Python that a call runs."""
    count = 0

    def note(_frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_an_owner_is_steered_to_the_first_seat_without_looking_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    own = pod("w", controller=WEB, cpu="1")
    later = counting(monkeypatch, NodeHolds, "later")
    verdict = filter_nodes(own, [f"x{number}" for number in range(200)], state, NOW)
    assert verdict.effects == (Nominate(own, "n0"),)
    assert later.calls < 150


@pytest.mark.parametrize("nominated", ["n0", "n150", "n298"])
def test_an_owner_is_steered_to_the_seat_after_the_one_that_was_refused(nominated: str) -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    own = pod("w", controller=WEB, cpu="1", nominated=nominated)
    verdict = filter_nodes(own, ["x"], state, NOW)
    following = NODES[NODES.index(nominated) + 1]
    assert verdict.effects == (Nominate(own, following),)
    assert verdict.lost_seat is not None
    assert verdict.lost_seat.node == nominated


def test_an_owner_whose_last_seat_was_refused_lands_elsewhere() -> None:
    state = crowd(everywhere([rule(controller=WEB)]))
    state.node_seen(node("free", cpu="4"))
    own = pod("w", controller=WEB, cpu="1", nominated=NODES[-1])
    assert filter_nodes(own, ["free"], state, NOW).nodes == ["free"]
