"""Bindings that an observer did not see at once, because of an outage or a gap."""

from __future__ import annotations

import pytest

from hack.promises.check import Kind, judge
from hack.promises.history import Outage, with_outages
from tests.unit.promises.tape import Tape


def test_what_others_bound_a_moment_ago_is_not_known_yet(tape: Tape) -> None:
    tape.reserve("owner")
    tape.land("foreign", "n", cpu="2", schedulerName="default-scheduler")
    tape.land("stranger", "n", cpu="1")
    assert tape.kinds() == []
    tape.wait(5)
    tape.land("late", "n", cpu="100m")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_binding_decided_before_an_outage_may_arrive_after_it(tape: Tape) -> None:
    tape.pod("stranger")
    tape.outage(8)
    tape.put("new", tape.entry("owner", cpu="4"))
    tape.wait(4)
    tape.bind("stranger", "n")
    assert tape.kinds() == []


def test_a_hold_from_before_an_outage_counts_after_it(tape: Tape) -> None:
    tape.reserve("owner", cpu="4")
    tape.outage(8)
    tape.land("stranger", "n")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_binding_that_was_missed_is_judged_by_what_held_all_the_while(tape: Tape) -> None:
    tape.reserve("owner", cpu="4")
    tape.pod("stranger")
    before = tape.revision
    tape.bind("stranger", "n")
    tape.wait(3)
    tape.miss("pods", before)
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_hold_from_within_a_gap_does_not_count_in_it(tape: Tape) -> None:
    tape.pod("stranger")
    before = tape.revision
    tape.bind("stranger", "n")
    tape.reserve("owner", cpu="4")
    tape.miss("pods", before)
    assert tape.kinds() == []


def test_an_entry_that_went_in_a_gap_does_not_count_in_it(tape: Tape) -> None:
    tape.reserve("owner", cpu="4")
    before = tape.revision
    tape.edit({"hold-owner": None})
    tape.land("stranger", "n")
    tape.miss("configmaps", before)
    assert tape.kinds() == []


def test_a_pod_that_went_in_a_gap_takes_nothing_though_its_name_came_again(tape: Tape) -> None:
    tape.node("m")
    tape.land("moving", "n", cpu="3")
    before = tape.revision
    tape.delete("moving")
    tape.land("moving", "m", cpu="3")
    tape.miss("pods", before)
    tape.reserve("owner")
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == []


def test_a_predecessor_from_before_the_recording_does_not_cost_an_owner_its_turn(
    tape: Tape,
) -> None:
    tape.node("m")
    tape.land("owner", "m", cpu="1")
    tape.records.pop(-2)
    tape.records[-1]["type"] = "LISTED"
    ref = tape.reserve("owner", cpu="1")
    tape.reserve("later", cpu="4")
    tape.delete("owner")
    tape.land("owner", "n", ref, cpu="1")
    assert tape.kinds() == []


@pytest.mark.parametrize(("created", "kinds"), [("before", []), ("meanwhile", [Kind.GIVEN_AWAY])])
def test_a_binding_after_a_standstill_may_have_been_decided_before_it_if_there_was_a_pod(
    created: str, kinds: list[Kind], tape: Tape
) -> None:
    if created == "before":
        tape.pod("stranger", cpu="2")
        tape.wait(5)
    stopped = tape.now
    tape.wait(1)
    tape.reserve("owner", cpu="4")
    tape.wait(10)
    if created == "meanwhile":
        tape.pod("stranger", cpu="2")
    tape.wait(5)
    standstill = Outage(stopped, tape.now)
    tape.bind("stranger", "n")
    history = with_outages(tape.history(), [standstill])
    assert [each.kind for each in judge(history, tape.rules()).violations] == kinds
