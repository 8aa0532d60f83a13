"""Held room is not given away: bindings that break this promise, and bindings that do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.promises.check import Kind
from tests.unit.promises.tape import LIST_STORE, STORE, Tape, rfc3339


def test_a_stranger_in_held_capacity_is_a_violation_with_its_sums(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("first", "n")
    tape.land("second", "n", cpu="1500m")
    (violation,) = tape.report().violations
    assert violation.kind is Kind.GIVEN_AWAY
    assert (violation.pod, violation.node, violation.entry) == ("shop/second", "n", ref)
    assert violation.revision == tape.revision
    sums = {"allocatable": 4000, "taken": 1000, "held": 2000, "requested": 1500}
    assert violation.sums == {"resource": "cpu", **sums}
    assert "second" in str(violation)


def test_what_fits_beside_a_hold_is_fine(tape: Tape) -> None:
    tape.reserve("owner")
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == []


def test_the_owner_takes_its_seat(tape: Tape) -> None:
    ref = tape.reserve("owner", cpu="4")
    tape.land("owner", "n", ref, cpu="4")
    assert tape.kinds() == []


def test_an_owner_that_takes_more_than_its_seat_takes_it_from_others(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.reserve("other")
    tape.land("owner", "n", ref, cpu="2500m")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_slots_that_are_left_stay_held_from_an_owner_that_took_one(tape: Tape) -> None:
    tape.put("three", tape.entry("a", "b", "c", cpu="1", slots=3))
    tape.wait(5)
    tape.land("a", "n", f"{STORE}/three", cpu="1")
    tape.land("b", "n", f"{STORE}/three", cpu="2500m")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


@pytest.mark.parametrize("age_s", [0.1, 0.9])
def test_a_hold_that_nobody_may_have_seen_yet_is_not_counted(tape: Tape, age_s: float) -> None:
    tape.put("new", tape.entry("owner", cpu="4"))
    tape.wait(age_s)
    tape.land("stranger", "n")
    assert tape.kinds() == []
    assert tape.kinds(grace_s=age_s / 2) == [Kind.GIVEN_AWAY]


def test_of_a_hold_that_has_just_grown_what_it_was_before_counts(tape: Tape) -> None:
    tape.reserve("owner", cpu="1")
    tape.put("hold-owner", tape.entry("owner", cpu="4"))
    tape.land("stranger", "n", cpu="3")
    tape.land("stranger-2", "n", cpu="100m")
    (violation,) = tape.report().violations
    assert violation.sums["held"] == 1000


@pytest.mark.parametrize(
    ("lives_s", "kinds"), [(3, []), (5.5, []), (6.5, []), (9, [Kind.GIVEN_AWAY])]
)
def test_an_expired_hold_holds_nothing_and_about_the_moment_nobody_can_tell(
    tape: Tape, lives_s: float, kinds: list[str]
) -> None:
    tape.now = 1_900_000_000.4  # An expiry is written in whole seconds.
    tape.reserve("owner", cpu="4", lives_s=lives_s)
    tape.land("stranger", "n")
    assert tape.kinds() == kinds


@pytest.mark.parametrize(("in_s", "kinds"), [(-10, [Kind.GIVEN_AWAY]), (60, [])])
def test_a_hold_counts_from_its_start(tape: Tape, in_s: float, kinds: list[str]) -> None:
    tape.reserve("owner", cpu="4", startsAt=rfc3339(tape.now + in_s))
    tape.land("stranger", "n")
    assert tape.kinds() == kinds


def test_a_removed_hold_holds_nothing(tape: Tape) -> None:
    tape.reserve("owner", cpu="4")
    tape.remove("hold-owner")
    tape.land("stranger", "n")
    assert tape.kinds() == []


def test_a_claimed_hold_holds_nothing_though_it_is_still_in_the_store(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.land("owner", "n", ref, cpu="1")
    tape.land("stranger", "n", cpu="3")
    assert tape.kinds() == []


def test_a_claim_that_is_being_written_may_have_ended_the_hold_already(tape: Tape) -> None:
    ref = tape.reserve("owner")
    tape.pod("owner", cpu="1")
    tape.land("stranger", "n", cpu="3")
    tape.bind("owner", "n", ref)
    assert tape.kinds() == []


def test_a_reservation_for_the_successor_holds_while_its_predecessor_runs(tape: Tape) -> None:
    tape.node("m")
    tape.land("owner", "m")
    tape.wait(5)
    tape.reserve("owner", cpu="4")
    tape.land("stranger", "n")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_room_that_was_taken_when_the_hold_was_written_is_no_fault_of_others(tape: Tape) -> None:
    tape.land("first", "n", cpu="3")
    tape.reserve("owner")
    tape.land("no-cpu", "n", cpu="0")
    assert tape.kinds() == []
    tape.land("more", "n", cpu="1m")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_resources_that_nobody_holds_are_not_judged(tape: Tape) -> None:
    tape.reserve("owner", cpu="1")
    big = {"name": "main", "resources": {"requests": {"memory": "80Gi"}}}
    tape.land("stranger", "n", containers=[big])
    assert tape.kinds() == []


def test_pods_that_are_done_or_gone_take_nothing(tape: Tape) -> None:
    tape.land("done", "n", cpu="2")
    tape.land("gone", "n", cpu="2")
    tape.finish("done")
    tape.delete("gone")
    tape.reserve("owner", cpu="1")
    tape.land("stranger", "n", cpu="3")
    assert tape.kinds() == []


@pytest.mark.parametrize(
    "spec",
    [
        {"priority": 2_000_000_000},
        {"schedulerName": "default-scheduler"},
        {"nodeName": "n"},
    ],
    ids=["system", "other-scheduler", "created-bound"],
)
def test_pods_that_reserver_does_not_judge_are_not_its_fault(
    tape: Tape, spec: dict[str, Any]
) -> None:
    tape.reserve("owner", cpu="4")
    tape.land("agent", "n", **spec)
    report = tape.report(exempt_namespaces=frozenset({"shop"}))
    assert report.violations == ()
    assert report.counts["judged"] == 0
    assert report.counts["exempt"] + report.counts["bound by others"] == 1


def test_a_system_priority_is_no_excuse_in_any_other_namespace(tape: Tape) -> None:
    tape.reserve("owner", cpu="4")
    tape.land("agent", "n", priority=2_000_000_000)
    assert tape.kinds() == ["given away"]


@pytest.mark.parametrize(
    "item",
    [
        {"pod": "o", "namespace": "shop", "cpu": 4000, "mem": 0, "expire": 1_900_003_600},
        {
            "reservingPod": "o",
            "reservingPodNamespace": "shop",
            "cpuMilli": 4000,
            "memMilli": 0,
            "expireAt": rfc3339(1_900_003_600),
        },
    ],
    ids=["short", "long"],
)
def test_the_list_forms_hold_as_well(tape: Tape, item: dict[str, Any]) -> None:
    tape.put("n", str([item]).replace("'", '"'), LIST_STORE)
    tape.wait(5)
    tape.land("stranger", "n")
    (violation,) = tape.report().violations
    assert violation.entry == f"{LIST_STORE}/n[shop/o]"


@given(
    held=st.lists(st.integers(1, 12), max_size=4),
    wanted=st.lists(st.integers(0, 12), max_size=6),
)
def test_who_never_takes_more_than_is_left_is_never_blamed(
    held: list[int], wanted: list[int]
) -> None:
    """A pod that takes more is always a violation; simple sums are the oracle."""
    tape = Tape()
    tape.node("n", cpu="16")
    for number, cpu in enumerate(held):
        tape.reserve(f"owner-{number}", cpu=str(cpu))
    free = 16 - sum(held)
    blamed = []
    for number, cpu in enumerate(wanted):
        tape.land(f"stranger-{number}", "n", cpu=str(cpu))
        free -= cpu
        if held and cpu and free < 0:
            blamed.append(f"shop/stranger-{number}")
    assert [violation.pod for violation in tape.report().violations] == blamed


def test_on_its_seat_an_owner_stands_before_what_was_written_after_it(tape: Tape) -> None:
    tape.land("first", "n", cpu="2")
    seat = tape.reserve("owner")
    other = tape.reserve("other")
    tape.land("owner", "n", seat)
    assert tape.kinds() == []
    tape.land("other", "n", other)
    assert tape.kinds() == []  # Nothing is held any more: the node is only too full.


def test_an_owner_does_not_take_what_was_held_before_its_seat_was_written(tape: Tape) -> None:
    tape.land("first", "n", cpu="2")
    tape.reserve("other")
    seat = tape.reserve("owner")
    tape.land("owner", "n", seat)
    assert tape.kinds() == [Kind.GIVEN_AWAY]
