"""A refusal ends with the hold that it names."""

from __future__ import annotations

from typing import Any

import pytest

from hack.promises.check import Kind
from hack.promises.history import Outage
from tests.unit.promises.tape import Tape

STALE = [Kind.STALE_REFUSAL]


def keep_waiting(tape: Tape, seconds: float = 30, **pod: Any) -> None:
    """Refuse a pod because of a hold that is removed after a second, without a retry."""
    ref = tape.reserve("owner", cpu="4")
    tape.pod("stranger", **pod)
    tape.refuse("stranger", ref)
    tape.wait(1)
    tape.remove("hold-owner")
    tape.wait(seconds)


def test_a_pod_that_waits_for_room_that_is_free(tape: Tape) -> None:
    keep_waiting(tape)
    (violation,) = tape.report().violations
    assert violation.kind is Kind.STALE_REFUSAL
    assert (violation.pod, violation.node, violation.sums) == (
        "shop/stranger",
        "n",
        {"seconds": 30.0},
    )


def test_a_pod_that_lands_in_time(tape: Tape) -> None:
    keep_waiting(tape, 12)
    tape.bind("stranger", "n")
    tape.wait(60)
    assert tape.kinds() == []


def test_a_pod_that_landed_too_late(tape: Tape) -> None:
    keep_waiting(tape, 20)
    tape.bind("stranger", "n")
    assert tape.kinds() == STALE
    assert tape.kinds(patience_s=25) == []


def test_a_pod_that_is_refused_for_another_reason_by_then(tape: Tape) -> None:
    keep_waiting(tape, 5)
    tape.refuse("stranger")
    tape.wait(60)
    assert tape.kinds() == []


def test_a_hold_that_lasts_may_keep_a_pod_waiting(tape: Tape) -> None:
    ref = tape.reserve("owner", cpu="4")
    tape.pod("stranger")
    tape.refuse("stranger", ref)
    tape.wait(60)
    assert tape.kinds() == []


def test_a_hold_that_another_one_follows_may_keep_a_pod_waiting(tape: Tape) -> None:
    keep_waiting(tape, 5)
    tape.reserve("next", cpu="4")
    tape.wait(60)
    assert tape.kinds() == []


@pytest.mark.parametrize("how", ["bound", "nominated"])
def test_room_that_somebody_else_takes_is_not_free(tape: Tape, how: str) -> None:
    keep_waiting(tape, 5)
    if how == "bound":
        tape.land("other", "n", cpu="4")
    else:
        tape.pod("other", cpu="4")
        tape.records[-1]["object"]["status"]["nominatedNodeName"] = "n"
    tape.wait(60)
    assert tape.kinds() == []


def test_a_node_that_changed_may_refuse_for_another_reason(tape: Tape) -> None:
    keep_waiting(tape, 5)
    tape.node("n")
    tape.records[-1]["object"]["spec"]["unschedulable"] = True
    tape.wait(60)
    assert tape.kinds() == []


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulerName": "default-scheduler"},
        {"affinity": {"podAntiAffinity": {}}, "topologySpreadConstraints": [{"maxSkew": 1}]},
        {"cpu": "5"},
    ],
    ids=["other-scheduler", "spread", "too-big"],
)
def test_a_pod_that_may_not_fit_for_other_reasons(tape: Tape, spec: dict[str, Any]) -> None:
    keep_waiting(tape, **spec)
    assert tape.kinds() == []


def test_a_pod_that_waits_for_a_seat_of_its_own(tape: Tape) -> None:
    tape.reserve("stranger", node="elsewhere", policy="Require")
    keep_waiting(tape)
    assert tape.kinds() == []


def test_an_outage_begins_the_wait_anew(tape: Tape) -> None:
    keep_waiting(tape, 10)
    tape.outage(20)
    tape.wait(10)
    assert tape.kinds() == []
    tape.wait(10)
    assert tape.kinds() == STALE


def test_an_expired_and_a_claimed_hold_are_over_as_well(tape: Tape) -> None:
    tape.node("m")
    expiring = tape.reserve("nobody", cpu="4", lives_s=12)
    claimed = tape.reserve("owner", cpu="4", node="m")
    tape.pod("stranger")
    tape.refuse("stranger", expiring, claimed)
    tape.land("owner", "m", claimed)
    tape.wait(25)
    report = tape.report()
    assert [v.kind for v in report.violations] == [Kind.STALE_REFUSAL] * 2
    assert {v.entry for v in report.violations} == {expiring, claimed}


@pytest.mark.parametrize(("after_s", "kinds"), [(1, []), (5, STALE)])
def test_a_pod_that_is_refused_because_of_what_is_over(
    tape: Tape, after_s: float, kinds: list[str]
) -> None:
    ref = tape.reserve("owner", cpu="4")
    tape.remove("hold-owner")
    tape.wait(after_s)
    tape.pod("stranger")
    tape.refuse("stranger", ref)
    assert tape.kinds() == kinds


def test_a_refusal_that_names_what_nobody_recorded_is_not_judged(tape: Tape) -> None:
    tape.pod("stranger")
    tape.refuse("stranger", "elsewhere/holds/unknown")
    tape.wait(60)
    assert tape.kinds() == []


def test_nobody_is_bound_while_kube_scheduler_cannot_call(tape: Tape) -> None:
    keep_waiting(tape, 30)
    tape.bind("stranger", "n")
    assert tape.kinds() == STALE
    parted = Outage(tape.now - 25, tape.now - 3)
    assert tape.kinds(pauses=(parted,)) == []
