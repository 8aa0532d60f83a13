"""The end of a hold: a written binding of an owner on the slot's node."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import STORE, Tape, claiming

WEB = {"app": "web"}
MIRROR = {"kubernetes.io/config.mirror": "0123"}
PLACE = f"{STORE}/web"


def reserve(tape: Tape, **more: Any) -> None:
    """Write a reservation for pods with a label, and let time pass."""
    owners = [{"selector": {"matchLabels": WEB, "namespace": "shop"}}]
    tape.put("web", tape.entry(**{"owners": owners, "cpu": "4"} | more))
    tape.wait(5)


def forge(tape: Tape, node: str, *refs: str) -> None:
    """Write a pod whose annotations claim, from its creation on, reservations that it matches."""
    tape.pod("forged", "0", labels=WEB, annotations=claiming(*refs), nodeName=node)
    tape.wait(5)


# The node of a claim


@pytest.mark.parametrize("node", ["m", "no-such-node"])
def test_a_claim_elsewhere_ends_nothing_and_who_took_that_for_its_end_is_found(
    node: str, tape: Tape
) -> None:
    reserve(tape)
    forge(tape, node, PLACE)
    tape.wait(60)
    assert tape.kinds() == []  # The unclaimed reservation stays.
    tape.land("stranger", "n")
    tape.edit({"web": None})
    assert tape.kinds() == [Kind.GIVEN_AWAY, Kind.RESERVATION_LOST]


def test_a_claim_on_the_slots_own_node_ends_it_whoever_bound_the_pod(tape: Tape) -> None:
    reserve(tape)
    forge(tape, "n", PLACE)
    tape.land("stranger", "n", cpu="4")
    tape.edit({"web": None})
    assert tape.kinds() == []


def test_a_binding_that_the_watch_of_pods_shows_late_ended_its_hold_all_the_same(
    tape: Tape,
) -> None:
    reserve(tape)
    tape.pod("owner", labels=WEB)
    tape.bind("owner", "n", PLACE)
    binding = tape.records.pop()
    tape.edit({"web": None})
    tape.wait(3)
    tape.records.append(binding | {"at": tape.now})
    assert tape.kinds() == []


def test_who_says_that_it_claims_what_has_been_claimed_was_given_nothing(tape: Tape) -> None:
    reserve(tape)
    tape.land("owner", "n", PLACE, labels=WEB)
    forge(tape, "n", PLACE)
    assert tape.kinds() == []


def test_of_what_is_placed_a_claim_counts_where_it_is_placed(tape: Tape) -> None:
    reserve(tape, node="", slots=2)
    spec = json.loads(tape.history().lines[-1].item["data"]["web"])
    tape.edit({"web": json.dumps(spec | {"placements": [{"node": "n", "slots": 2}]})})
    tape.wait(5)
    forge(tape, "m", PLACE)
    tape.land("owner", "n", PLACE, cpu="0", labels=WEB)
    tape.wait(5)
    assert tape.kinds() == []
    tape.edit({"web": None})
    assert tape.kinds() == [Kind.RESERVATION_LOST]


def test_what_has_no_place_yet_may_have_one_where_it_is_claimed(tape: Tape) -> None:
    reserve(tape, node="")
    tape.land("owner", "m", PLACE, labels=WEB)
    tape.edit({"web": None})
    assert tape.kinds() == []


# The pod of a claim


@pytest.mark.parametrize("forged", [{}, claiming(f"{STORE}/hold-owner")])
def test_a_mirror_pod_under_an_owners_name_ends_nothing(forged: dict[str, str], tape: Tape) -> None:
    tape.reserve("owner", cpu="4")
    tape.pod("owner", "0", nodeName="n", annotations=MIRROR | forged)
    tape.wait(60)
    assert tape.kinds() == []
    tape.land("stranger", "n")
    tape.edit({"hold-owner": None})
    assert tape.kinds() == [Kind.GIVEN_AWAY, Kind.RESERVATION_LOST]


def test_a_mirror_pod_that_matches_ends_nothing(tape: Tape) -> None:
    reserve(tape)
    tape.pod("static", "0", nodeName="n", labels=WEB, annotations=MIRROR | claiming(PLACE))
    tape.wait(5)
    tape.land("stranger", "n")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_another_pod_of_that_name_ends_it_whoever_bound_it(tape: Tape) -> None:
    tape.reserve("owner", cpu="4")
    tape.pod("owner", "0", nodeName="m")
    tape.wait(5)
    tape.land("stranger", "n")
    tape.edit({"hold-owner": None})
    assert tape.kinds() == []


# When


def two_seats(tape: Tape, cpu: str = "4") -> tuple[str, str]:
    """Reserve for one pod on two nodes."""
    return tape.reserve("owner", cpu=cpu), tape.reserve("owner", "other", node="m", cpu=cpu)


def test_what_is_held_elsewhere_is_held_until_the_binding_is_written(tape: Tape) -> None:
    refs = two_seats(tape)
    tape.pod("owner", cpu="4")
    tape.land("stranger", "m")
    tape.bind("owner", "n", *refs)
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_binding_that_is_written_ends_what_is_held_elsewhere_at_once(tape: Tape) -> None:
    refs = two_seats(tape)
    tape.land("owner", "n", *refs, cpu="4")
    tape.land("stranger", "m")
    assert tape.kinds() == []


@pytest.mark.parametrize("fate", ["waits", "gone", "bound later"])
def test_a_binding_that_was_never_written_ends_nothing(fate: str, tape: Tape) -> None:
    """A pod takes its request of the slot; the rest may be given away in between."""
    refs = two_seats(tape, cpu="3")
    tape.pod("owner", cpu="2")
    tape.land("stranger", "n", cpu="2")  # Fits next to the pod, not next to the slot.
    if fate == "gone":
        tape.delete("owner")
    elif fate == "bound later":
        tape.bind("owner", "m", *refs)
    assert tape.kinds() == []
    tape.land("next", "n", cpu="1m")
    assert tape.kinds() == ([] if fate == "bound later" else [Kind.GIVEN_AWAY])


def test_what_a_binding_that_was_never_written_ended_for_good_is_lost(tape: Tape) -> None:
    tape.reserve("owner")
    tape.pod("owner", cpu="2")
    tape.edit({"hold-owner": None})
    tape.delete("owner")
    assert tape.kinds() == [Kind.RESERVATION_LOST]


def test_a_pod_on_its_way_counts_once_however_many_slots_it_takes(tape: Tape) -> None:
    refs = tape.reserve("owner"), tape.reserve("owner", "other")
    tape.pod("owner", cpu="2")
    tape.land("stranger", "n", cpu="2")
    tape.bind("owner", "n", *refs)
    assert tape.kinds() == []


def test_only_so_many_are_on_their_way_to_a_slot_as_there_are_slots(tape: Tape) -> None:
    reserve(tape, cpu="1", slots=3)
    for number in range(4):
        tape.pod(f"owner-{number}", cpu=f"{250 * number}m", labels=WEB)
    tape.land("stranger", "n", cpu="3250m")  # The three smallest take 750m.
    assert tape.kinds() == []
    tape.land("next", "n", cpu="1m")
    assert tape.kinds() == [Kind.GIVEN_AWAY]
