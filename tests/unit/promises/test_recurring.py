"""Recurring entries: each occurrence holds, and is claimed, by itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hack.promises.check import Kind
from tests.unit.promises.tape import NOW, STORE, Tape

PLACE = f"{STORE}/web"
START = NOW + 800  # 18:00:00, on a day without a change of clocks.
MINUTE, HOUR = 60.0, 3600.0


def at(tape: Tape, moment: float) -> None:
    tape.now = moment


def reserve(tape: Tape, **more: Any) -> None:
    """Write a reservation of every hour, for half of it; now is between two occurrences."""
    schedule = {"cron": "0 * * * *", "duration": "30m", **more.pop("schedule", {})}
    owners = [{"pod": {"name": name, "namespace": "shop"}} for name in ("a", "b")]
    spec = {"owners": owners, "resources": {"cpu": "3"}, "node": "n", "schedule": schedule}
    tape.put("web", json.dumps(spec | more))
    tape.wait(5)


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


@pytest.mark.parametrize(
    ("since_start", "found"),
    [
        (-60, []),
        (60, [Kind.GIVEN_AWAY]),
        (31 * MINUTE, []),
        (61 * MINUTE, [Kind.GIVEN_AWAY]),
        (91 * MINUTE, []),
    ],
)
def test_strangers_stay_out_while_an_occurrence_lasts(
    tape: Tape, since_start: float, found: list[Kind]
) -> None:
    reserve(tape)
    at(tape, START + since_start)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == found


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        ({"lead": "10m"}, [Kind.GIVEN_AWAY]),
        ({"skip": [moment(START)], "lead": "10m"}, []),
        ({"suspend": True, "lead": "10m"}, []),
        ({"until": moment(START - 1), "lead": "10m"}, [Kind.LEFT_OVER]),
        ({"timeZone": "Asia/Kolkata"}, [Kind.GIVEN_AWAY]),  # Its hours begin at half past.
    ],
    ids=["lead", "skip", "suspend", "until", "zone"],
)
def test_what_is_left_out_holds_nothing_and_a_lead_is_part_of_it(
    tape: Tape, schedule: dict[str, Any], found: list[Kind]
) -> None:
    reserve(tape, schedule=schedule)
    at(tape, START - 5 * MINUTE)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == found


@pytest.mark.parametrize(
    "schedule",
    [
        {"cron": "0 * * *"},
        {"cron": "0 0 30 2 *"},
        {"timeZone": "Mars/Base"},
        {"duration": "61m"},
        {"duration": "59s"},
        {"count": 3},
        {"every": "hour"},
    ],
    ids=str,
)
def test_what_cannot_be_kept_is_broken_and_holds_nothing(
    tape: Tape, schedule: dict[str, Any]
) -> None:
    reserve(tape, schedule=schedule)
    at(tape, START + MINUTE)
    tape.land("stranger", "n", cpu="2")
    report = tape.report()
    assert (report.violations, report.counts["broken entries"]) == ((), 1)


def test_so_many_are_counted_from_its_start(tape: Tape) -> None:
    reserve(tape, schedule={"count": 2}, startsAt=moment(START))
    at(tape, START + 61 * MINUTE)
    tape.land("stranger", "n", cpu="2")
    at(tape, START + 121 * MINUTE)
    tape.edit({"web": None})  # The last one is over.
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_each_occurrence_is_claimed_by_itself(tape: Tape) -> None:
    reserve(tape)
    for hour, name in enumerate("ab"):
        at(tape, START + hour * HOUR + MINUTE)
        tape.land(name, "n", PLACE, cpu="3")
        tape.wait(MINUTE)
        tape.delete(name)
    at(tape, START + 2 * HOUR + MINUTE)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_slot_of_an_occurrence_is_claimed_once(tape: Tape) -> None:
    reserve(tape)
    at(tape, START + MINUTE)
    tape.land("a", "n", PLACE, cpu="1")
    tape.wait(MINUTE)
    tape.land("b", "n", PLACE, cpu="1")
    assert tape.kinds() == [Kind.CLAIMED_TWICE]


def test_a_pod_that_lands_between_two_claims_neither(tape: Tape) -> None:
    reserve(tape)
    tape.land("a", "m", cpu="1")
    at(tape, START + MINUTE)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_skip_leaves_the_claims_of_the_occurrence_under_way(tape: Tape) -> None:
    reserve(tape)
    at(tape, START + MINUTE)
    tape.land("a", "n", PLACE, cpu="3")
    tape.wait(MINUTE)
    tape.delete("a")
    reserve(tape, schedule={"skip": [moment(START + HOUR)]})
    tape.land("stranger", "n", cpu="4")
    assert tape.kinds() == []


def test_a_skip_of_the_occurrence_under_way_ends_it(tape: Tape) -> None:
    reserve(tape)
    at(tape, START + MINUTE)
    reserve(tape, schedule={"skip": [moment(START)]})
    tape.land("stranger", "n", cpu="4")
    at(tape, START + HOUR + MINUTE)
    tape.delete("stranger")
    tape.wait(MINUTE)
    tape.land("another", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_a_refusal_between_two_is_stale(tape: Tape) -> None:
    reserve(tape)
    at(tape, START + MINUTE)
    tape.pod("stranger", cpu="2")
    tape.refuse("stranger", PLACE)
    at(tape, START + 31 * MINUTE)
    assert Kind.STALE_REFUSAL in tape.kinds()
    tape.bind("stranger", "n")
    assert Kind.STALE_REFUSAL in tape.kinds()


def test_a_refusal_that_ends_with_its_occurrence_is_in_time(tape: Tape) -> None:
    reserve(tape)
    at(tape, START + MINUTE)
    tape.pod("stranger", cpu="2")
    tape.refuse("stranger", PLACE)
    at(tape, START + 30 * MINUTE + 1)
    tape.bind("stranger", "n")
    assert tape.kinds() == []


def test_a_claimed_occurrence_is_no_reason_to_remove_what_recurs(tape: Tape) -> None:
    reserve(tape)
    at(tape, START + MINUTE)
    tape.land("a", "n", PLACE, cpu="3")
    at(tape, START + 2 * HOUR)
    assert tape.kinds() == []
    tape.edit({"web": None})
    assert tape.kinds() == [Kind.RESERVATION_LOST]


def test_what_comes_no_more_has_to_go(tape: Tape) -> None:
    reserve(tape, schedule={"until": moment(START + 1)})
    at(tape, START + 31 * MINUTE)
    assert tape.kinds() == [Kind.LEFT_OVER]
    tape.edit({"web": None})
    assert tape.kinds() == []


def test_where_it_was_placed_the_next_occurrence_holds(tape: Tape) -> None:
    owners = [{"pod": {"name": "a", "namespace": "shop"}}]
    schedule = {"cron": "0 * * * *", "duration": "30m"}
    spec = {"owners": owners, "resources": {"cpu": "3"}, "schedule": schedule}
    tape.put("web", json.dumps(spec | {"placements": [{"node": "n", "slots": 1}]}))
    at(tape, START + HOUR + MINUTE)
    tape.land("stranger", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]


def test_an_idle_occurrence_is_over_and_the_next_one_holds(tape: Tape) -> None:
    reserve(tape, releaseIfIdle="10m")
    at(tape, START + 12 * MINUTE)
    tape.land("stranger", "n", cpu="4")
    tape.wait(MINUTE)
    tape.delete("stranger")
    at(tape, START + HOUR + MINUTE)
    tape.land("another", "n", cpu="2")
    assert tape.kinds() == [Kind.GIVEN_AWAY]
