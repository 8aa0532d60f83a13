"""Filter's answers to an owner: its seats, a fallback, or to wait."""

import dataclasses

import pytest

from reserver.reservations.reservation import Reservation
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.verdicts import FilterVerdict, Nominate, WaitsFor
from tests.builders import NOW, pod, reservation, rule, state_of
from tests.unit.scheduling.asking import NAMES, OWNER, SEAT, W1, W2, W3, answer, ask


def steered_to(verdict: FilterVerdict) -> list[str]:
    return [effect.node for effect in verdict.effects if isinstance(effect, Nominate)]


def test_an_owner_gets_its_seat_and_nothing_else() -> None:
    assert answer(ask(OWNER, SEAT)) == ["worker-2"]


def test_an_owner_gets_all_of_its_seats_among_the_names_oldest_first() -> None:
    seats = [reservation(f"r{number}", node=f"worker-{number}", cpu="2") for number in (3, 1)]
    assert answer(ask(OWNER, *seats)) == ["worker-3", "worker-1"]


def test_an_owners_seat_is_kept_free_for_it() -> None:
    neighbour = pod("b", node="worker-2", cpu="2")
    assert answer(ask(OWNER, SEAT, neighbour, names=["worker-2"])) == ["worker-2"]
    assert answer(ask(pod("c", cpu="2"), SEAT, neighbour, names=["worker-2"])) == []


def test_all_that_names_a_pod_on_a_node_adds_up_for_it() -> None:
    seats = [reservation(key, node="worker-2", cpu="2") for key in ("r1", "r2")]
    assert answer(ask(pod("owner", cpu="4"), *seats, names=["worker-2"])) == ["worker-2"]


def test_an_owner_may_use_only_one_slot_of_a_reservation() -> None:
    both = reservation("r", node="worker-2", owners=("owner", "b"), slots=2, cpu="2")
    assert answer(ask(pod("owner", cpu="2"), both, names=["worker-2"])) == ["worker-2"]
    assert answer(ask(pod("owner", cpu="3"), both, names=["worker-2"])) == []


def test_an_owner_may_want_more_than_its_slot_if_the_node_has_it_free() -> None:
    assert answer(ask(pod("owner", cpu="4"), SEAT, names=["worker-2"])) == ["worker-2"]
    crowded = reservation("others", node="worker-2", owners=("b",), cpu="1")
    assert answer(ask(pod("owner", cpu="4"), SEAT, crowded, names=["worker-2"])) == []


def test_an_owner_whose_seat_is_not_offered_is_refused_all_and_steered_there() -> None:
    verdict = ask(OWNER, SEAT, names=["worker-1", "worker-3"])
    assert answer(verdict) == []
    assert steered_to(verdict) == ["worker-2"]
    words = "waiting for its seat in reservation shop/store/r"
    assert verdict.refused == {"worker-1": words, "worker-3": words}


@pytest.mark.parametrize(
    ("require", "nominated", "names", "answered", "steered"),
    [
        pytest.param(False, "", ["worker-1"], [], ["worker-2"], id="to the first seat"),
        pytest.param(
            False, "worker-2", ["worker-2"], ["worker-2"], [], id="the steered call comes"
        ),
        pytest.param(
            False, "worker-2", ["worker-1"], [], ["worker-3"], id="refused there: to the next"
        ),
        pytest.param(False, "worker-3", ["worker-1"], ["worker-1"], [], id="Prefer: then anywhere"),
        pytest.param(True, "worker-2", ["worker-1"], [], ["worker-3"], id="Require: to the next"),
        pytest.param(True, "worker-3", ["worker-1"], [], [], id="Require: then it waits"),
        pytest.param(
            False, "worker-1", ["worker-1"], [], ["worker-2"], id="nominated for something else"
        ),
    ],
)
def test_an_owner_is_steered_from_seat_to_seat_before_it_falls_back_or_waits(
    *, require: bool, nominated: str, names: list[str], answered: list[str], steered: list[str]
) -> None:
    seats = [
        reservation(f"r{number}", node=f"worker-{number}", require=require, cpu="2")
        for number in (2, 3)
    ]
    verdict = ask(pod("owner", nominated=nominated, cpu="2"), *seats, names=names)
    assert answer(verdict) == answered
    assert steered_to(verdict) == steered


@pytest.mark.parametrize(("later", "answered"), [(0.0, []), (0.99, []), (1.0, ["worker-1"])])
def test_an_owner_waits_for_a_seat_that_kube_scheduler_is_just_clearing(
    later: float, answered: list[str]
) -> None:
    state = state_of(W1, W2, W3, SEAT)
    state.inflight_binds.failed("worker-2", NOW)
    asking = dataclasses.replace(OWNER, nominated_node="worker-2")
    verdict = filter_nodes(asking, ["worker-1"], state, NOW + later)
    assert answer(verdict) == answered
    assert verdict.waits_for is (None if answered else WaitsFor.SEAT)


def test_an_owner_waits_for_a_seat_until_it_is_decided_who_is_bound_there() -> None:
    state = state_of(W1, W2, W3, SEAT)
    asking = dataclasses.replace(OWNER, nominated_node="worker-2")
    state.inflight_binds.asked("worker-2")
    state.inflight_binds.asked("worker-2")
    for _ in range(2):
        verdict = filter_nodes(asking, ["worker-1"], state, NOW)
        assert (answer(verdict), verdict.waits_for) == ([], WaitsFor.SEAT)
        state.inflight_binds.decided("worker-2")
    assert answer(filter_nodes(asking, ["worker-1"], state, NOW)) == ["worker-1"]


def test_one_reservation_that_requires_its_seat_keeps_the_owner_from_falling_back() -> None:
    prefers = reservation("p", node="worker-2", cpu="2")
    requires = reservation("q", node="worker-3", require=True, cpu="2")
    asking = pod("owner", nominated="worker-3", cpu="2")
    assert answer(ask(asking, prefers, requires, names=["worker-1"])) == []


def test_one_that_requires_its_seat_does_so_beside_an_older_one_on_the_same_node() -> None:
    matched = rule(app="web")
    prefers, requires = (
        reservation(key, node="worker-3", owners=(), rules=(matched,), require=require, cpu="4")
        for key, require in (("p", False), ("q", True))
    )
    asking = pod("web-1", labels={"app": "web"}, cpu="2")
    state = state_of(W1, W2, W3, prefers, requires, pod("b", node="worker-3", cpu="4"))
    assert answer(filter_nodes(asking, NAMES, state, NOW)) == []
    assert judge_bind(asking, "worker-1", state, NOW).refusal is not None
    assert judge_preemption(asking, {"worker-1": ["uid-c"]}, state, NOW).nodes == ()


def test_an_owner_that_falls_back_may_not_take_what_is_held_for_others() -> None:
    others = reservation("others", node="worker-1", owners=("b",), cpu="4")
    asking = dataclasses.replace(OWNER, nominated_node="worker-2")
    verdict = ask(asking, SEAT, others, names=["worker-1", "worker-3"])
    assert answer(verdict) == ["worker-3"]


@pytest.mark.parametrize(("require", "answered"), [(False, ["worker-1"]), (True, [])])
def test_an_owner_whose_seat_has_no_room_falls_back_or_waits(
    *, require: bool, answered: list[str]
) -> None:
    seat = reservation("r", node="worker-2", require=require, cpu="2")
    others = reservation("others", node="worker-2", owners=("b",), cpu="1")
    squatter = pod("c", node="worker-2", cpu="3")
    verdict = ask(pod("owner", cpu="2"), seat, others, squatter, names=["worker-1"])
    assert answer(verdict) == answered
    assert steered_to(verdict) == []


def test_a_seat_on_a_node_that_does_not_exist_is_not_steered_to() -> None:
    verdict = ask(OWNER, reservation("r", node="ghost", cpu="2"), names=["worker-1"])
    assert answer(verdict) == ["worker-1"]
    assert verdict.effects == ()


@pytest.mark.parametrize(
    "seat",
    [
        reservation("r", node="worker-2", cpu="4", expires=NOW),
        reservation("r", node="worker-2", cpu="4", starts=NOW + 1),
        reservation("r", node="worker-2", cpu="4", owners=("other",)),
    ],
    ids=["expired", "not started", "somebody else's"],
)
def test_a_pod_owns_only_what_holds_for_it_now(seat: Reservation) -> None:
    assert "worker-1" in answer(ask(OWNER, seat))


def test_an_owner_that_has_claimed_its_seat_is_a_pod_like_any_other() -> None:
    state = state_of(W1, W2, W3, SEAT)
    state.assume(OWNER, "worker-2", (SEAT.identity,))
    verdict = filter_nodes(pod("owner", uid="new", cpu="1"), NAMES, state, NOW)
    assert answer(verdict) == ["worker-1", "worker-3", "worker-2"]  # Those without holds first.
