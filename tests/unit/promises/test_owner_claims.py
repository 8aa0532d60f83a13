"""Claims of matched owners, and the entries that the claims end."""

from __future__ import annotations

import pytest

from hack.promises.check import Kind
from tests.unit.promises.matched import BY_LABEL, WEB, reserve
from tests.unit.promises.tape import Tape


@pytest.mark.parametrize("gone", [True, False])
def test_a_slot_is_claimed_for_good(tape: Tape, *, gone: bool) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1", slots=2)
    for name in "abc":
        tape.land(name, "n", ref, labels=WEB)
        tape.wait(20)
        if gone:
            tape.delete(name)
    (violation,) = tape.report(cleaner_s=300).violations
    assert (violation.kind, violation.pod) == (Kind.CLAIMED_TWICE, "shop/c")


@pytest.mark.parametrize(("ago_s", "kinds"), [(20, []), (31, [Kind.CLAIMED_TWICE])])
def test_a_reserver_that_was_just_started_may_not_know_of_claims_whose_pods_are_gone(
    tape: Tape, ago_s: float, kinds: list[Kind]
) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1")
    tape.land("a", "n", ref, labels=WEB)
    tape.wait(20)
    tape.delete("a")
    tape.wait(40)
    tape.land("b", "n", ref, labels=WEB)
    assert tape.kinds(ends=(tape.now - ago_s,), cleaner_s=300) == kinds
    tape.land("c", "n", ref, labels=WEB)
    assert tape.kinds(ends=(tape.now - 10,), cleaner_s=300) == [Kind.CLAIMED_TWICE]


def test_a_claim_that_nobody_may_have_seen_may_be_forgotten(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1")
    tape.land("a", "n", ref, labels=WEB)
    tape.delete("a")
    tape.outage(20)
    tape.land("b", "n", ref, labels=WEB)
    assert tape.kinds() == []


def test_a_pod_that_is_named_takes_what_names_it(tape: Tape) -> None:
    mine = tape.reserve("owner", cpu="1")
    matching = reserve(tape, BY_LABEL, cpu="1")
    tape.land("owner", "n", mine, labels=WEB)
    assert tape.kinds() == []
    mine = tape.reserve("owner-2", cpu="1")
    tape.land("owner-2", "n", matching, labels=WEB)
    assert tape.kinds() == [Kind.CLAIM_NOT_RECORDED]


def test_named_and_matched_owners_share_the_slots(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, {"pod": {"name": "named"}}, cpu="1", slots=2)
    tape.land("named", "m", ref)
    tape.land("matched", "n", ref, labels=WEB)
    assert tape.kinds() == []
    tape.land("third", "n", ref, labels=WEB)
    assert tape.kinds() == [Kind.CLAIMED_TWICE]


def test_an_entry_goes_when_the_last_slot_is_claimed_and_not_before(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1", slots=2)
    tape.land("a", "n", ref, labels=WEB)
    tape.land("b", "n", ref, labels=WEB)
    tape.edit({"seats": None})
    assert tape.kinds() == []
    ref = reserve(tape, BY_LABEL, key="early", node="m", cpu="1", slots=2)
    tape.land("c", "m", ref, labels=WEB)
    tape.edit({"early": None})
    assert tape.kinds() == [Kind.RESERVATION_LOST]


@pytest.mark.parametrize("stood_s", [1, 20])
def test_one_that_is_claimed_and_stands_is_left_over(tape: Tape, stood_s: float) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1", slots=2)
    for name in "ab":
        tape.land(name, "n", ref, labels=WEB)
    tape.wait(stood_s)
    tape.delete("a")
    tape.wait(50 - stood_s)
    # A pod that was deleted at once may have been forgotten.
    assert tape.kinds() == ([Kind.LEFT_OVER] if stood_s > 10 else [])


def test_a_refusal_for_slots_that_are_all_claimed_is_stale(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1", slots=2)
    tape.pod("waiting", cpu="2")
    for name in "ab":
        tape.refuse("waiting", ref)
        tape.land(name, "n", ref, labels=WEB)
        tape.wait(5)
    assert tape.kinds() == []
    tape.refuse("waiting", ref, ref)
    assert tape.kinds() == [Kind.STALE_REFUSAL]


def test_of_a_pod_whose_labels_changed_it_cannot_be_told(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1")
    tape.land("a", "n", ref, labels=WEB)
    tape.label("a", app="other")
    tape.land("b", "n", ref, labels=WEB)
    tape.pod("c", labels=WEB)
    tape.label("c", app="other")
    tape.bind("c", "n")
    assert tape.kinds() == []


def test_an_owner_that_was_just_deleted_may_have_been_on_its_way(tape: Tape) -> None:
    reserve(tape, BY_LABEL, cpu="4")
    tape.pod("owner", labels=WEB)
    tape.delete("owner")
    tape.land("stranger", "n")
    assert tape.kinds() == []


def test_a_claim_from_before_the_recording_counts(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1", slots=2)
    tape.land("before", "n", ref, labels=WEB)
    pending, bound = (r for r in tape.records if r["collection"] == "pods")
    tape.records.remove(pending)
    bound["type"] = "LISTED"
    tape.wait(5)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == []
    tape.land("another", "n", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]
