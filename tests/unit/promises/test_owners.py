"""Owners that a reservation matches without naming them: who they are, and what is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from hack.promises.check import Kind
from hack.promises.owners import read_owners, traits
from tests.unit.promises.tape import STORE, Tape

WEB = {"app": "web"}
BY_LABEL = {"selector": {"matchLabels": WEB}}
BY_MAKER = {"controller": {"kind": "ReplicaSet", "name": "web-1"}}
SEATS = f"{STORE}/seats"


def reserve(tape: Tape, *owners: dict[str, Any], key: str = "seats", **entry: Any) -> str:
    """Write a reservation for pods of the namespace shop, and have a while pass."""
    there = [{k: {"namespace": "shop", **part} for k, part in o.items()} for o in owners]
    tape.put(key, tape.entry(owners=there, **entry))
    tape.wait(5)
    return f"{STORE}/{key}"


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
        ("Require", [SEATS], []),  # It was placed there, and claimed before that was written.
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
