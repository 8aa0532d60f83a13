"""The recall of borrowers when an owner comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reserver.cluster.lending import MOST_CLOSED_S
from reserver.cluster.pod import Pod
from reserver.scheduling.pod_events import recalled
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.recall import RECALL_S
from reserver.scheduling.verdicts import Nominate, WaitsFor
from tests.builders import NOW, node, pod, reservation
from tests.unit.scheduling.lending.loans import (
    LENT,
    OWNER,
    W1,
    W2,
    borrower,
    lending,
    owner_asks,
    passes,
    recalled_by,
    short,
    wanted_by,
)


@pytest.mark.parametrize(
    ("there", "go"),
    [
        pytest.param(
            [borrower("a", "4"), borrower("b", "4", priority=5)],
            {"a"},
            id="the least important goes",
        ),
        pytest.param(
            [
                borrower("a", "4", created="2026-01-01T00:00:00Z"),
                borrower("b", "4", created="2026-01-02T00:00:00Z"),
            ],
            {"b"},
            id="the youngest goes",
        ),
        pytest.param(
            [borrower("a", "1"), borrower("b", "1", priority=5), borrower("c", "6", priority=9)],
            {"c"},
            id="those who do not help are spared",
        ),
        pytest.param(
            [borrower("a", "2"), borrower("b", "2", priority=5), borrower("c", "4", priority=9)],
            {"a", "b"},
            id="as many as it takes",
        ),
        pytest.param(
            [pod("a", cpu="4", priority=-9), borrower("b", "4", priority=9)],
            {"b"},
            id="nobody goes who has not borrowed",
        ),
    ],
)
def test_borrowers_go_when_an_owner_comes(there: list[Pod], go: set[str]) -> None:
    state = lending(W1, LENT, *(replace(each, node="worker-1") for each in there))
    verdict = owner_asks(state)
    assert recalled_by(verdict) == go
    assert {event.pod.name.name for event in recalled(verdict.effects)} == go
    for each in go:
        state.pod_gone(pod(each).name)
    assert owner_asks(state, "worker-1").nodes == ["worker-1"]


def test_who_is_on_the_way_out_is_waited_for() -> None:
    going = replace(borrower("a", "4", on="worker-1"), terminating=True)
    state = lending(W1, LENT, going, borrower("b", "4", on="worker-1"))
    verdict = owner_asks(state)
    assert not verdict.effects
    assert verdict.waits_for is WaitsFor.SEAT


def test_who_takes_a_year_to_end_is_given_two_minutes_and_closes_nothing() -> None:
    """A borrower deleted by its author, with a grace period of a year, kept the owner out."""
    lingers = replace(borrower("a", "5", on="worker-1"), terminating=True, lingers=True)
    state = lending(W1, LENT, lingers)
    assert passes(borrower("b", "3"), state)
    assert recalled_by(owner_asks(state)) == {"a"}
    assert wanted_by(state) == {"a"}
    state.ledger.put(reservation("lent", cpu="4"))
    assert short(state) == {"worker-1": {"a"}}
    state.pod_seen(replace(lingers, lingers=False))  # As after a second deletion.
    assert not owner_asks(state).effects
    assert short(state) == {}


def test_nothing_more_is_lent_while_an_owner_waits() -> None:
    state = lending(W1, LENT, borrower("a", "5", on="worker-1"))
    assert recalled_by(owner_asks(state)) == {"a"}
    state.pod_gone(pod("a").name)
    assert not passes(borrower("b", "5"), state)
    assert passes(borrower("b", "4"), state)
    assert passes(borrower("b", "5"), state, NOW + RECALL_S)


def test_a_seat_that_is_not_borrowed_comes_first() -> None:
    two = reservation("two", node="", placed={"worker-1": 1, "worker-2": 1}, slots=2, cpu="4")
    lent = replace(two, lends_below=100)
    state = lending(W1, W2, lent, borrower("a", "8", on="worker-1"))
    (effect,) = owner_asks(state).effects
    assert effect == Nominate(OWNER, "worker-2")
    assert owner_asks(state, "worker-2").nodes == ["worker-2"]


def test_other_holds_count_when_an_owner_comes() -> None:
    """The owner has room next to the borrower, but the room is held for another owner."""
    firm = reservation("firm", owners=("a",), cpu="2")
    here = (borrower("b", "4", on="worker-1"), pod("c", node="worker-1", cpu="2"))
    state = lending(node("worker-1", cpu="8"), LENT, *here)
    state.ledger.put(firm)
    small = replace(OWNER, requests={"cpu": 2000, "pods": 1})
    assert recalled_by(owner_asks(state, "worker-1", asking=small)) == {"b"}


def test_an_owner_gets_back_its_own_beside_what_others_lend_of_another_kind() -> None:
    gpu = reservation("gpu", owners=("g",), lends_below=100, gpu="1")
    state = lending(
        node("worker-1", cpu="8", gpu="2"), LENT, gpu, borrower("a", "8", on="worker-1")
    )
    assert recalled_by(owner_asks(state)) == {"a"}


def test_borrowers_go_though_nothing_is_lent_any_more() -> None:
    state = lending(W1, LENT, borrower("a", "8", on="worker-1"))
    state.ledger.put(reservation("lent", cpu="4"))
    assert recalled_by(owner_asks(state)) == {"a"}


def test_kube_scheduler_evicts_nobody_for_an_owner_whose_seat_is_borrowed() -> None:
    stranger = pod("c", node="worker-1", priority=-5, cpu="4")
    state = lending(W1, W2, LENT, borrower("a", "4", on="worker-1"), stranger)
    asked = {"worker-1": ["uid-c"], "worker-2": ["uid-d"]}
    assert judge_preemption(replace(OWNER, priority=10), asked, state, NOW).nodes == ()


def test_others_may_be_evicted_elsewhere_for_an_owner_whom_no_borrower_could_help() -> None:
    stranger = pod("c", node="worker-1", priority=-5, cpu="4")
    state = lending(W1, W2, LENT, borrower("a", "4", on="worker-1"), stranger)
    state.pod_seen(pod("d", node="worker-2", priority=-5, cpu="8"))
    asked = {"worker-2": ["uid-d"]}
    asking = pod("owner", priority=10, cpu="6")
    assert judge_preemption(asking, asked, state, NOW).nodes == ("worker-2",)


def test_a_node_is_closed_for_as_long_as_it_may_be() -> None:
    for seconds, is_open in ((MOST_CLOSED_S, False), (MOST_CLOSED_S + 1, True)):
        lending_ = lending(W1, LENT).snapshot.lending
        lending_.recall("worker-1", NOW + seconds)
        assert bool(lending_.left(0, ["worker-1"], NOW)) is is_open


def test_what_is_recalled_for_long_stays_closed_when_an_owner_comes_in_between() -> None:
    lending_ = lending(W1, LENT).snapshot.lending
    for until in (NOW + 140, NOW + RECALL_S):
        lending_.recall("worker-1", until)
    assert lending_.left(0, ["worker-1"], NOW + 139) == {}
    assert "worker-1" in lending_.left(0, ["worker-1"], NOW + 140)
    for until in (NOW + 150, NOW + 200):
        lending_.recall("worker-1", until)
    assert lending_.left(0, ["worker-1"], NOW + 199) == {}
    assert "worker-1" in lending_.left(0, ["worker-1"], NOW + 200)
    lending_.recall("worker-1", NOW + 3_600 + RECALL_S)
    lending_.recall("worker-1", NOW + RECALL_S)  # The clock was set back.
    assert lending_.left(0, ["worker-1"], NOW) == {}
    assert "worker-1" in lending_.left(0, ["worker-1"], NOW + RECALL_S)
