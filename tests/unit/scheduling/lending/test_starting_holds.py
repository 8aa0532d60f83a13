"""The recall of borrowers before a hold starts."""

from __future__ import annotations

from dataclasses import replace

from reserver.base.pacer import outcome
from reserver.base.schedule import Schedule
from reserver.reservations.entry import identified
from reserver.reservations.quota import Quota
from reserver.reservations.recurrence import Recurrence
from reserver.scheduling.recall import AHEAD_S
from tests.builders import BORROWER, NOW, pod, reservation, rule
from tests.unit.scheduling.lending.loans import (
    LENT,
    W1,
    borrower,
    lending,
    owner_asks,
    recalled_by,
    short,
)


def test_borrowers_go_before_a_hold_starts_that_does_not_lend() -> None:
    starts = NOW + AHEAD_S
    there = [borrower(name, "3", on="worker-1") for name in ("a", "b")]
    coming = reservation("coming", owners=("a",), starts=starts, cpu="4")
    state = lending(W1, *there, coming)
    assert short(state, NOW - 1) == {}
    assert short(state) == {"worker-1": {"a"}}
    state.pod_gone(pod("a").name)
    assert short(state) == {}


def test_borrowers_stay_for_an_occurrence_of_what_is_suspended() -> None:
    nightly = Recurrence(schedule=Schedule("0 0 * * *", 3600.0))
    midnight = nightly.shown(NOW)[0].start
    coming = reservation("coming", owners=(), rules=(rule(app="a"),), cpu="4")
    state = lending(W1, borrower("a", "8", on="worker-1"))
    state.ledger.put(identified(replace(coming, recurrence=nightly)))
    assert short(state, midnight - 1) == {"worker-1": {"a"}}
    suspended = nightly._replace(is_suspended=True)
    state.ledger.put(identified(replace(coming, recurrence=suspended)))
    assert short(state, midnight - 1) == {}


def test_borrowers_stay_for_a_hold_that_its_quota_does_not_admit() -> None:
    state = lending(W1, borrower("a", "8", on="worker-1"))
    state.ledger.quotas.limit("shop", (Quota(name="q", hard={"held.cpu": 3_999}),))
    state.ledger.put(reservation("coming", owners=("a",), starts=NOW + 1, cpu="4"))
    assert short(state) == {}
    state.ledger.quotas.limit("shop", (Quota(name="q", hard={"held.cpu": 4_000}),))
    outcome(state.ledger.admit("shop"))
    assert short(state) == {"worker-1": {"a"}}


def test_what_borrowers_have_invented_keeps_no_hold_from_its_room() -> None:
    there = pod("b", node="worker-1", constraints=BORROWER, cpu="8", invented="1")
    state = lending(W1, there, reservation("mine", owners=("a",), invented="1"))
    state.ledger.put(reservation("hold", cpu="4"))
    assert short(state) == {"worker-1": {"b"}}


def test_borrowers_stay_where_the_hold_that_starts_lends() -> None:
    coming = reservation("coming", owners=("a",), starts=NOW + 1, lends_below=100, cpu="4")
    state = lending(W1, borrower("a", "8", on="worker-1"), coming)
    assert short(state) == {}
    state.ledger.advance(NOW + 1)
    assert short(state, NOW + 1) == {}
    assert recalled_by(owner_asks(state, asking=pod("a", cpu="4"), now=NOW + 1)) == {"a"}


def test_borrowers_go_where_a_hold_lends_no_more() -> None:
    state = lending(W1, LENT, borrower("a", "6", on="worker-1"), borrower("b", "1", on="worker-1"))
    assert short(state) == {}
    state.ledger.put(reservation("lent", cpu="4"))
    assert short(state) == {"worker-1": {"a"}}


def test_borrowers_stay_where_their_room_would_not_help() -> None:
    state = lending(W1, reservation("large", owners=("a",), cpu="9"))
    state.pod_seen(borrower("b", "6", on="worker-1"))
    assert short(state) == {}


def test_borrowers_stay_where_what_they_leave_is_held_again() -> None:
    state = lending(W1, LENT, borrower("a", "4", on="worker-1"), reservation("hold", cpu="4"))
    assert short(state) == {}
    state.pod_seen(pod("stranger", node="worker-1", cpu="1"))
    assert short(state) == {}


def test_what_borrowers_do_not_use_may_be_short() -> None:
    both = reservation("both", owners=("a",), cpu="4", gpu="1")
    state = lending(W1, LENT, borrower("b", "8", on="worker-1"), both)
    state.ledger.put(reservation("lent", cpu="4"))
    assert short(state) == {"worker-1": {"b"}}
