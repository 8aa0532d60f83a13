"""Owners that a reservation matches without naming them: the pods, and the slots that they take."""

from __future__ import annotations

from typing import Any

import pytest

from hack.promises.check import Kind
from hack.promises.owners import read_owners, traits
from tests.unit.promises.matched import BY_LABEL, WEB, reserve
from tests.unit.promises.tape import STORE, Tape

BY_MAKER = {"controller": {"kind": "ReplicaSet", "name": "web-1"}}
SEATS = f"{STORE}/seats"


def term(key: str, operator: str, *values: object) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, **({"values": [*values]} if values else {})}
    return {"selector": {"matchExpressions": [expression]}}


@pytest.mark.parametrize(
    ("owner", "matches"),
    [
        (BY_LABEL, "labelled both"),
        (BY_MAKER, "made both"),
        ({**BY_LABEL, **BY_MAKER}, "both"),
        ({"pod": {"name": "labelled"}, **BY_LABEL}, "labelled"),
        ({"pod": {"name": "plain"}, **BY_LABEL}, ""),
        ({"controller": {"kind": "StatefulSet", "name": "web-1"}}, ""),
        (term("app", "In", "web", "api"), "labelled both"),
        (term("app", "NotIn", "web"), "plain made"),
        (term("app", "Exists"), "labelled both"),
        (term("app", "DoesNotExist"), "plain made"),
        ({"selector": {"matchLabels": WEB, "namespace": "other"}}, ""),
    ],
)
def test_whom_an_owner_matches(owner: dict[str, Any], matches: str) -> None:
    reference = {"kind": "ReplicaSet", "name": "web-1"}
    made: dict[str, Any] = {"ownerReferences": [{**reference, "controller": True}]}
    adopted = {"ownerReferences": [reference]}
    pods: dict[str, dict[str, Any]] = {
        "plain": adopted,
        "labelled": {"labels": WEB},
        "made": made,
        "both": {"labels": WEB, **made},
    }
    named, (rule,) = read_owners([owner], "shop")
    assert not named
    found = [
        name
        for name, metadata in pods.items()
        if rule.matches(traits({"name": name, "namespace": "shop", **metadata}))
    ]
    assert found == matches.split()


@pytest.mark.parametrize(
    "owner",
    [
        {},
        {"pod": None},
        {"pods": {"name": "a"}},
        {"pod": {"name": ""}},
        {"pod": {"name": 5}},
        {"controller": {"name": "web-1"}},
        {"selector": {}},
        {"selector": {"matchLabels": {}}},
        {"selector": {"matchLabels": {"app": 1}}},
        term("app", "In", 1),
        term("app", "In"),
        term("app", "Exists", "web"),
        term("app", "Near", "web"),
        {
            "pod": {"name": "a", "namespace": "x"},
            "selector": {"matchLabels": WEB, "namespace": "y"},
        },
        "pod",
    ],
)
def test_an_owner_that_makes_its_entry_broken(tape: Tape, owner: Any) -> None:
    tape.put("seats", tape.entry(owners=[owner]))
    assert tape.report().counts["broken entries"] == 1


@pytest.mark.parametrize("owner", [BY_LABEL, BY_MAKER, term("app", "In", "web")])
def test_who_matches_and_claims_takes_its_slot_and_a_stranger_may_not(
    tape: Tape, owner: dict[str, Any]
) -> None:
    ref = reserve(tape, owner, cpu="3", slots=1)
    tape.land("owner", "n", ref, cpu="3", labels=WEB, maker="web-1")
    assert tape.kinds() == []
    other = reserve(tape, owner, key="again", node="m", cpu="3")
    tape.land("stranger", "m", cpu="2", labels={"app": "other"}, maker="web-2")
    (violation,) = tape.report().violations
    assert (violation.kind, violation.entry) == (Kind.GIVEN_AWAY, other)


def test_who_matches_takes_one_slot_and_the_others_stay_held(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, cpu="1", slots=3)
    tape.land("a", "n", ref, cpu="1", labels=WEB)
    tape.land("b", "n", ref, cpu="2500m", labels=WEB)
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_of_two_that_it_matches_it_takes_the_room_of_one(tape: Tape) -> None:
    first = reserve(tape, BY_LABEL, cpu="2")
    reserve(tape, BY_MAKER, key="second", cpu="2")
    tape.land("owner", "n", first, cpu="3", labels=WEB, maker="web-1")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


@pytest.mark.parametrize(
    ("claims", "kinds"),
    [
        (["seats"], []),
        (["second"], []),
        (["seats", "second"], [Kind.CLAIMED_WRONGLY]),
        ([], [Kind.CLAIM_NOT_RECORDED]),
    ],
)
def test_of_two_that_it_matches_it_claims_either_and_one(
    tape: Tape, claims: list[str], kinds: list[Kind]
) -> None:
    reserve(tape, BY_LABEL, cpu="1")
    reserve(tape, BY_MAKER, key="second", cpu="1")
    refs = [f"{STORE}/{key}" for key in claims]
    tape.land("owner", "n", *refs, labels=WEB, maker="web-1")
    assert tape.kinds() == kinds


def test_who_matches_may_land_elsewhere_and_then_claims_nothing(tape: Tape) -> None:
    tape.land("first", "n", cpu="3")
    ref = reserve(tape, BY_LABEL)
    tape.land("owner", "m", cpu="2", labels=WEB)
    report = tape.report()
    assert (report.violations, report.warnings) == ((), ())
    tape.land("liar", "m", ref, cpu="2", labels=WEB)
    assert tape.kinds() == [Kind.CLAIMED_WRONGLY]


def test_a_seat_that_was_edited_onto_another_node_may_be_meant_as_it_was(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL)
    there = [{"selector": {**BY_LABEL["selector"], "namespace": "shop"}}]
    tape.put("seats", tape.entry(owners=there, node="m"))
    tape.land("owner", "n", ref, labels=WEB)
    assert tape.kinds() == []
    tape.wait(5)
    tape.land("another", "n", ref, labels=WEB)
    assert tape.kinds() == [Kind.CLAIMED_WRONGLY]


def test_who_lands_beside_a_seat_with_room_is_a_warning(tape: Tape) -> None:
    reserve(tape, BY_LABEL)
    tape.land("owner", "m", cpu="2", labels=WEB)
    (warning,) = tape.report().warnings
    assert (warning.kind, warning.sums) == (Kind.OFF_SEAT, {"seat": "n"})


def test_who_must_land_on_a_seat_may_land_nowhere_else(tape: Tape) -> None:
    reserve(tape, BY_MAKER, policy="Require")
    tape.land("owner", "m", maker="web-1")
    assert tape.kinds() == [Kind.OFF_SEAT]


def test_one_that_may_have_been_offered_the_lenient_one_may_land_elsewhere(tape: Tape) -> None:
    reserve(tape, BY_LABEL, policy="Require", cpu="3")
    reserve(tape, BY_MAKER, key="lenient", cpu="3")
    tape.land("owner", "m", labels=WEB, maker="web-1", cpu="2")
    assert tape.kinds() == []


@pytest.mark.parametrize(
    ("policy", "claims", "kinds"),
    [
        ("Require", [], [Kind.OFF_SEAT]),
        ("Require", [SEATS], []),  # The seat was claimed before its place was written.
        ("Prefer", [], []),
    ],
)
def test_who_must_land_on_a_seat_waits_until_there_is_one(
    tape: Tape, policy: str, claims: list[str], kinds: list[Kind]
) -> None:
    reserve(tape, BY_LABEL, node="", policy=policy)
    tape.land("owner", "m", *claims, labels=WEB)
    report = tape.report()
    assert ([violation.kind for violation in report.violations], report.warnings) == (kinds, ())


def test_any_of_its_seats_will_do(tape: Tape) -> None:
    reserve(tape, BY_LABEL, policy="Require")
    other = reserve(tape, BY_MAKER, key="second", node="m", policy="Require")
    tape.land("owner", "m", other, labels=WEB, maker="web-1")
    assert tape.kinds() == []


def test_more_owners_than_slots_go_elsewhere_without_a_claim(tape: Tape) -> None:
    ref = reserve(tape, BY_LABEL, policy="Require", cpu="1")
    for name in "ab":
        tape.pod(name, labels=WEB)
    tape.bind("a", "n", ref)
    tape.bind("b", "m")
    assert tape.kinds() == []
