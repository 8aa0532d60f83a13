"""Slots that come back, holds that yield to priority, and entries that were moved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import LIST_STORE, STORE, Tape, rfc3339

WEB = {"app": "web"}
SEATS = f"{STORE}/seats"
OWNERS = [{"selector": {"matchLabels": WEB, "namespace": "shop"}}]


def reserve(tape: Tape, *, slots: int = 1, cpu: str = "3", lives_s: float = 3600) -> None:
    tape.put(
        "seats", tape.entry(owners=OWNERS, slots=slots, cpu=cpu, lives_s=lives_s, reusable=True)
    )
    tape.wait(5)


def test_a_slot_is_used_again_and_again_and_the_entry_stays(tape: Tape) -> None:
    reserve(tape)
    for name in "abc":
        tape.land(name, "n", SEATS, cpu="3", labels=WEB)
        tape.wait(100)
        tape.delete(name) if name != "b" else tape.finish(name)
    assert tape.kinds() == []


@pytest.mark.parametrize("how", ["deleted", "finished"])
def test_it_holds_again_when_its_pod_went(tape: Tape, how: str) -> None:
    reserve(tape)
    tape.land("a", "n", SEATS, cpu="3", labels=WEB)
    tape.wait(5)
    tape.delete("a") if how == "deleted" else tape.finish("a")
    tape.land("at-once", "n", cpu="2")
    assert tape.kinds() == []
    tape.delete("at-once")
    tape.wait(5)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_it_may_have_come_back_at_any_moment_in_which_nobody_looked(tape: Tape) -> None:
    reserve(tape)
    tape.land("a", "n", SEATS, cpu="1", labels=WEB)
    tape.wait(5)
    since = tape.revision
    tape.delete("a")
    tape.wait(5)
    tape.miss("pods", since, ["shop/a"])
    tape.land("at-once", "n", cpu="3")
    assert tape.kinds() == []
    tape.wait(5)
    tape.land("late", "n", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_more_pods_at_the_same_time_than_slots(tape: Tape) -> None:
    reserve(tape, slots=2, cpu="1")
    for name in "ab":
        tape.land(name, "n", SEATS, labels=WEB)
    tape.delete("a")
    tape.land("c", "n", SEATS, labels=WEB)
    assert tape.kinds() == []
    tape.land("d", "n", SEATS, labels=WEB)
    (violation,) = tape.report().violations
    assert (violation.kind, violation.pod) == (Kind.CLAIMED_TWICE, "shop/d")


def test_an_owner_that_says_nothing_of_a_slot_that_came_back(tape: Tape) -> None:
    reserve(tape)
    tape.land("a", "n", SEATS, cpu="3", labels=WEB)
    tape.delete("a")
    tape.wait(5)
    tape.land("b", "n", cpu="1", labels=WEB)
    assert tape.kinds() == [Kind.CLAIM_NOT_RECORDED]


def test_one_that_goes_because_it_was_claimed_is_lost(tape: Tape) -> None:
    reserve(tape)
    tape.land("a", "n", SEATS, cpu="3", labels=WEB)
    tape.wait(5)
    tape.edit({"seats": None})
    assert tape.kinds() == [Kind.RESERVATION_LOST]


def test_its_claims_count_when_it_was_extended(tape: Tape) -> None:
    reserve(tape, lives_s=20)
    tape.land("a", "n", SEATS, cpu="3", labels=WEB)
    tape.wait(10)
    reserve(tape)
    tape.land("beside", "n", cpu="1")
    tape.delete("a")
    tape.wait(30)
    assert tape.kinds() == []
    tape.land("stranger", "n", cpu="1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_one_that_has_expired_is_left_over_though_it_was_claimed(tape: Tape) -> None:
    reserve(tape, lives_s=20)
    tape.land("a", "n", SEATS, cpu="3", labels=WEB)
    tape.wait(60)
    assert tape.kinds() == [Kind.LEFT_OVER]


@pytest.mark.parametrize(("went", "kinds"), [(False, [Kind.STALE_REFUSAL]), (True, [])])
def test_a_refusal_is_stale_only_while_the_slot_is_taken(
    tape: Tape, *, went: bool, kinds: list[Kind]
) -> None:
    reserve(tape)
    tape.land("a", "n", SEATS, cpu="3", labels=WEB)
    tape.wait(10)
    if went:
        tape.delete("a")
    tape.pod("waiting", cpu="2")
    tape.refuse("waiting", SEATS)
    assert tape.kinds() == kinds


def test_a_named_owner_comes_back_to_its_seat(tape: Tape) -> None:
    ref = tape.reserve("web-0", reusable=True)
    for _ in range(2):
        tape.land("web-0", "n", ref, cpu="2")
        tape.wait(100)
        tape.delete("web-0")
    assert tape.kinds() == []
    tape.wait(5)
    tape.land("web-0", "n", cpu="2")
    assert tape.kinds() == [Kind.CLAIM_NOT_RECORDED]


# Priority


@pytest.mark.parametrize(("priority", "kinds"), [(501, []), (500, [Kind.GIVEN_AWAY])])
def test_a_hold_yields_to_a_higher_priority(tape: Tape, priority: int, kinds: list[Kind]) -> None:
    tape.reserve("owner", cpu="3", preemptible=True, priority=500)
    tape.land("urgent", "n", cpu="4", priority=priority)
    assert tape.kinds() == kinds


def test_an_owner_stands_before_what_yields_and_not_the_other_way_round(tape: Tape) -> None:
    tape.reserve("yields", cpu="3", preemptible=True)
    firm = tape.reserve("firm", cpu="3")
    tape.land("firm", "n", firm, cpu="3")
    assert tape.kinds() == []
    tape.delete("firm")
    tape.reserve("later", cpu="3")
    tape.land("yields", "n", f"{STORE}/hold-yields", cpu="3")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


@pytest.mark.parametrize(
    "more",
    [
        {"preemptible": "yes"},
        {"priority": 5},
        {"preemptible": True, "priority": "high"},
        {"reusable": 1},
        {"slots": 0},
        {"slots": "2"},
    ],
)
def test_what_makes_no_sense_breaks_the_entry(tape: Tape, more: dict[str, Any]) -> None:
    tape.put("seats", tape.entry("owner", **more))
    assert tape.report().counts["broken entries"] == 1


# Moved from one store to another


def test_what_was_moved_holds_once_and_its_claims_count(tape: Tape) -> None:
    old = f"{LIST_STORE}/n[shop/owner]"
    expire = int(tape.now) + 3600
    item = {"pod": "owner", "namespace": "shop", "cpu": 2000, "mem": 0, "expire": expire}
    tape.put("n", json.dumps([item]), LIST_STORE)
    tape.wait(5)
    copy = tape.entry("owner", expiresAt=rfc3339(expire), origin=old, requestId="r-1")
    tape.put("owner", copy)
    tape.wait(5)
    tape.land("beside", "n", cpu="2")
    tape.edit({"n": None}, LIST_STORE)
    tape.wait(5)
    assert tape.kinds() == []
    tape.land("owner", "n", old, cpu="2")
    assert tape.kinds() == []
    tape.wait(40)
    assert tape.kinds() == [Kind.LEFT_OVER]


def test_what_was_moved_is_held_from_strangers(tape: Tape) -> None:
    tape.put("owner", tape.entry("owner", origin="shop/holds/before"))
    tape.wait(5)
    tape.land("stranger", "n", cpu="3")
    (violation,) = tape.report().violations
    assert (violation.kind, violation.entry) == (Kind.GIVEN_AWAY, "shop/holds/before")


def test_who_forges_a_claim_elsewhere_just_after_it_was_placed_took_no_slot(tape: Tape) -> None:
    entry = json.loads(tape.entry(owners=OWNERS, slots=1, node="", cpu="3", reusable=True))
    tape.put("seats", json.dumps(entry))
    tape.edit({"seats": json.dumps(entry | {"placements": [{"node": "m", "slots": 1}]})})
    tape.land("forged", "n", SEATS, cpu="1", labels=WEB, schedulerName="other")
    tape.wait(5)
    tape.land("owner", "m", SEATS, cpu="3", labels=WEB)
    assert tape.kinds() == []
    tape.land("another", "m", SEATS, cpu="1", labels=WEB)
    assert Kind.CLAIMED_TWICE in tape.kinds()
