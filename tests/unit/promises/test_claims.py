"""Each slot is claimed once, the claim stands on the pod, and it ends the hold for good."""

from __future__ import annotations

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import STORE, Tape


def test_a_claim_and_its_cleaning_are_fine(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("owner", "n", ref)
    tape.edit({"hold-owner": None})
    tape.wait(120)
    report = tape.report()
    assert (report.violations, report.warnings) == ((), ())
    assert report.counts["owners"] == 1


def test_one_slot_claimed_by_two_pods(tape: Tape) -> None:
    tape.put("shared", tape.entry("a", "b"))
    tape.wait(5)
    tape.land("a", "n", f"{STORE}/shared")
    tape.wait(2)
    tape.land("b", "n", f"{STORE}/shared")
    (violation,) = tape.report().violations
    assert violation.kind is Kind.CLAIMED_TWICE
    assert (violation.pod, violation.sums) == ("shop/b", {"slots": 1})
    assert "shop/a" in violation.text


def test_two_slots_are_for_two_pods(tape: Tape) -> None:
    tape.put("shared", tape.entry("a", "b", slots=2))
    tape.wait(5)
    for owner in ("a", "b"):
        tape.land(owner, "n", f"{STORE}/shared")
        tape.wait(2)
    assert tape.kinds() == []


def test_a_slot_comes_back_when_the_pod_went_before_anybody_cleaned(tape: Tape) -> None:
    ref = tape.reserve("owner")
    for _ in range(2):
        tape.land("owner", "n", ref)
        tape.wait(2)
        tape.delete("owner")
    assert tape.kinds() == []


def test_an_owner_that_landed_without_a_word_of_its_reservation(tape: Tape) -> None:
    tape.reserve("owner")
    tape.land("owner", "n")
    assert tape.kinds() == [Kind.CLAIM_NOT_RECORDED]


@pytest.mark.parametrize("scheduler", ["default-scheduler", ""])
def test_another_scheduler_owes_no_claim(tape: Tape, scheduler: str) -> None:
    tape.reserve("owner")
    tape.land("owner", "n", schedulerName=scheduler)
    assert tape.kinds() == []


def test_a_reservation_that_came_a_moment_before_the_binding_may_not_be_known(tape: Tape) -> None:
    tape.pod("owner")
    tape.put("hold-owner", tape.entry("owner"))
    tape.bind("owner", "n")
    assert tape.kinds() == []


def test_a_slot_that_somebody_else_took_is_not_claimed_again(tape: Tape) -> None:
    tape.put("shared", tape.entry("a", "b"))
    tape.wait(5)
    tape.land("a", "n", f"{STORE}/shared")
    tape.wait(2)
    tape.land("b", "n")
    assert tape.kinds() == []


def test_a_claim_that_did_not_end_its_reservation_is_left_and_then_lost(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("owner", "n", ref)
    tape.wait(20)
    assert tape.kinds() == []
    tape.wait(20)
    assert tape.kinds() == [Kind.LEFT_OVER]
    tape.wait(30)
    (violation,) = tape.report().violations
    assert violation.kind is Kind.CLAIM_LOST
    assert violation.sums == {"seconds": 70}


def test_an_outage_excuses_the_cleaner_for_its_time(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("owner", "n", ref)
    tape.outage(100)
    tape.wait(20)
    assert tape.kinds() == []


def test_a_claim_of_a_pod_that_is_gone_is_not_told_by_anybody(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("owner", "n", ref)
    tape.delete("owner")
    tape.wait(120)
    assert tape.kinds() == []


def test_an_expired_entry_is_left_over(tape: Tape) -> None:
    tape.reserve("nobody", lives_s=20)
    tape.wait(30)
    assert tape.kinds() == []
    tape.wait(30)
    assert tape.kinds() == [Kind.LEFT_OVER]


def test_an_owner_beside_its_seat_is_a_warning_if_the_seat_had_room(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("owner", "m", ref)
    report = tape.report()
    assert report.violations == ()
    (warning,) = report.warnings
    assert (warning.kind, warning.node, warning.sums) == (Kind.OFF_SEAT, "m", {"seat": "n"})


def test_an_owner_goes_elsewhere_if_its_seat_has_no_room(tape: Tape) -> None:
    tape.land("first", "n", cpu="3")
    ref = tape.reserve("owner")
    tape.land("owner", "m", ref, cpu="2")
    assert tape.report().warnings == ()


def test_an_owner_that_must_land_on_its_seat_may_land_nowhere_else(tape: Tape) -> None:
    tape.land("first", "n", cpu="3")
    ref = tape.reserve("owner", policy="Require")
    tape.land("owner", "m", ref, cpu="2")
    assert tape.kinds() == [Kind.OFF_SEAT]


def test_an_owner_goes_elsewhere_if_a_new_hold_may_have_taken_its_seats_room(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.put("new", tape.entry("other", cpu="3"))
    tape.land("owner", "m", ref, cpu="2")
    assert tape.report().warnings == ()
