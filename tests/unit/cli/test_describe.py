"""`reserver describe` shows refilled slots and a release when idle."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reserver.cli import describe, formatting, serialization
from reserver.client import Claim, OccurrenceInfo, ReservationInfo
from reserver.client.messages import read_reservation
from reserver.grpc.catalogue import show
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import IDLE, ReservationState
from reserver.stores.codec import spec_codec
from tests.builders import NOW

REF = Ref.of_object("shop", "pool")
ACTIVE = ReservationState(Phase.ACTIVE, is_backed=True)


def info(state: ReservationState = ACTIVE, **changes: Any) -> ReservationInfo:
    """Return a reservation as gRPC delivers it."""
    spec = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "1"}, "ttl": 0} | changes
    spec = {name: value for name, value in spec.items() if value is not None}
    reservation = spec_codec.read(spec, REF, NOW)
    return read_reservation(show(reservation, json.dumps(spec), state, {}))


def lines(reservation: ReservationInfo) -> dict[str, str]:
    return dict(describe._lines(reservation, datetime.fromtimestamp(NOW, UTC), ""))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"slots": 3}, "3 kept free, up to 1000 in all; 0 claimed"),
        ({"slots": 3, "refillUpTo": 5}, "3 kept free, up to 5 in all; 0 claimed"),
        ({"slots": 2000}, "2000 kept free, up to 2000 in all; 0 claimed"),
    ],
)
def test_slots_that_are_replaced_come_with_their_limit(changes: dict[str, Any], said: str) -> None:
    assert lines(info(refill=True, **changes))["Slots"] == said


def test_whole_nodes_come_with_their_labels_and_the_pods_there() -> None:
    nodes = {"count": 3, "selector": {"pool": "gpu"}}
    owners = [{"selector": {"matchLabels": {"app": "train"}}}]
    found = info(nodes=nodes, owners=owners, resources=None, node=None)
    printed = lines(found)
    assert printed["Whole nodes"] == "3 with pool=gpu; 0 pods of owners there"
    assert not {"Slots", "One slot holds"} & printed.keys()
    assert (formatting.slots(found), formatting.claimed(found)) == ("3 whole", "0 pods")
    one = replace(found, claims=(Claim("shop/train-0", "u"),))
    assert formatting.claimed(one) == "1 pod"
    assert lines(one)["Whole nodes"].endswith("; 1 pod of owners there")


def test_a_wait_for_pods_comes_with_the_moment_since_when_there_is_none() -> None:
    said = "released once no pod has had a slot for 1h30m"
    assert lines(info(releaseIfIdle="90m"))["If idle"] == said
    since = ACTIVE._replace(idle_since=NOW)
    printed = lines(info(since, releaseIfIdle="90m"))["If idle"]
    assert printed == f"{said}; none has since 2030-03-17T17:46:40Z"
    assert "If idle" not in lines(info())


def test_what_was_released_says_so_in_its_phase_and_can_be_read_by_programs() -> None:
    over = ReservationState(Phase.EXPIRED, is_backed=False, closed=IDLE, idle_since=NOW)
    found = info(over, releaseIfIdle="1m")
    assert formatting.phase(found).text == "Expired, idle"
    shown = serialization.show(found)
    assert shown["spec"]["releaseIfIdle"] == "1m"
    assert shown["status"]["idleSince"] == "2030-03-17T17:46:40Z"
    assert found.spec.release_if_idle == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("changes", "every", "line", "ends"),
    [
        ({}, "0 22 * * * (UTC) for 8h", ", next at 22:00", "starts in "),
        (
            {"lead": "30m"},
            "0 22 * * * (UTC) for 8h, held from 30m before",
            ", next at 22:00",
            "starts in ",
        ),
        (
            {"suspend": True},
            "0 22 * * * (UTC) for 8h; suspended: nothing is held",
            ", suspended",
            "suspended",
        ),
    ],
)
def test_when_it_holds_again_is_shown_unless_it_is_suspended(
    changes: dict[str, Any], every: str, line: str, ends: str
) -> None:
    schedule = {"cron": "0 22 * * *", "duration": "8h"} | changes
    noon = datetime(2030, 3, 17, 12, tzinfo=UTC)
    occurrence = OccurrenceInfo(noon + timedelta(hours=10), noon + timedelta(hours=18))
    state = ReservationState(Phase.PENDING, is_backed=False)
    found = replace(info(state, schedule=schedule, ttl=None), occurrences=(occurrence,))
    printed = dict(describe._lines(found, noon, ""))
    assert printed["Every"] == every
    assert ("Next" in printed) is not ("suspend" in changes)
    assert formatting.one_line(found, noon).endswith(line)
    assert formatting.ends_in(found, noon).startswith(ends)
