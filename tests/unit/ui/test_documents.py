"""The page's documents show the state of holds, and survive any text of others."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

import pytest

from reserver.client import (
    NodeCapacity,
    Nodes,
    OccurrenceInfo,
    OwnerSelector,
    PastReservation,
    Phase,
    PlacedSlots,
    PodOwner,
    RecurringSchedule,
    ReplacedPod,
    ReservationInfo,
    ResourceAmounts,
    Spec,
)
from reserver.k8s.objects.selectors import LabelSelector, label_selector
from reserver.maintenance.model import MaintenancePeriod, Window
from reserver.reservations.enums import Outcome
from reserver.ui import documents
from reserver.ui.documents import ReservationWords

AT = datetime(2026, 11, 24, 12, tzinfo=UTC)
OWNER = PodOwner(namespace="shop", name="web-0")


def info(
    phase: Phase | None = Phase.ACTIVE, *, backed: bool = True, **spec: Any
) -> ReservationInfo:
    spec = {"owners": (OWNER,), "resources": {"cpu": "2", "memory": "4Gi"}, **spec}
    return ReservationInfo(
        name="web", id="shop/web", spec=Spec(**spec), etag="e", phase=phase, is_backed=backed,
        message="", claims=(), placements=(PlacedSlots("n1", 1),), since=AT,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "shape"),
    [
        (info(), "held"),
        (info(backed=False), "noroom"),
        (replace(info(Phase.PENDING), reason="NotStarted"), "later"),
        (info(Phase.PENDING), "placeless"),
        (info(Phase.CLAIMED), "claimed"),
        (info(Phase.EXPIRED), "over"),
        (info(Phase.FAILED), "broken"),
        (info(Phase.INVALID), "broken"),
        (info(None), "broken"),
    ],
)
def test_each_phase_has_its_shape(one: ReservationInfo, shape: str) -> None:
    assert documents.shape(one) == shape


@pytest.mark.parametrize(("count", "said"), [(1, "a whole node"), (3, "3 whole nodes")])
def test_whole_nodes_are_said_in_words(count: int, said: str) -> None:
    found = documents.reservation(info(resources={}, nodes=Nodes(count)), ReservationWords())
    assert (found["holds"], found["slots"], found["amounts"]) == (said, 1, {})


def test_a_reservation_has_exact_amounts_and_milliseconds() -> None:
    found = documents.reservation(info(expires_at=AT), ReservationWords())
    assert found["amounts"] == {"cpu": 2000, "memory": 4 * 2**30}
    assert found["nodes"] == [["n1", 1]]
    assert (found["since"], found["ends"], found["starts"]) == (
        AT.timestamp() * 1000,
        AT.timestamp() * 1000,
        None,
    )
    assert not found["isSeat"]


def test_what_recurs_has_this_occurrence_and_those_that_come_each_from_its_lead_on() -> None:
    hours = [(0, 4), (5, 9), (24, 28)]
    occurrences = tuple(
        OccurrenceInfo(AT + timedelta(hours=begin), AT + timedelta(hours=end))
        for begin, end in hours
    )
    schedule = RecurringSchedule(
        cron="0 12,17 * * *", duration=timedelta(hours=4), lead=timedelta(hours=2)
    )
    found = documents.reservation(
        replace(info(schedule=schedule), occurrences=occurrences), ReservationWords(every="daily")
    )
    noon, hour = AT.timestamp() * 1000, 3_600_000
    assert (found["starts"], found["ends"]) == (noon - 2 * hour, noon + 4 * hour)
    # The second begins once the first is over.
    assert found["coming"] == [
        (noon + 4 * hour, noon + 9 * hour),
        (noon + 22 * hour, noon + 28 * hour),
    ]
    assert found["every"] == "daily"


def test_the_seat_of_a_move_is_marked() -> None:
    owner = OwnerSelector(namespace="shop", replaces=ReplacedPod("uid"))
    assert documents.reservation(info(owners=(owner,)), ReservationWords())["isSeat"]


def test_what_cannot_be_read_or_is_very_long_does_no_harm() -> None:
    broken = info(owners=(), resources={"cpu": "1x", "memory": "1Gi"}, description="x" * 10**6)
    found = documents.reservation(broken, ReservationWords(owners="o" * 10**6))
    assert found["amounts"] == {"memory": 2**30}
    assert len(found["description"]) == len(found["owners"]) == 1000
    assert found["namespace"] == ""


def test_texts_cannot_reverse_or_hide_what_the_page_shows() -> None:
    text = "\u202egpj.exe\u200b\x1b[31m\nsecond line"
    found = documents.reservation(info(description=text), ReservationWords(owners=text))
    moved = {"metadata": {"name": "m", "namespace": "shop"}, "status": {"message": text}}
    for shown in (found["description"], found["owners"], documents.move(moved)["message"]):
        assert shown == "\\u202egpj.exe\\u200b\\x1b[31m\nsecond line"


def test_the_pages_types_are_those_of_its_documents() -> None:
    types = (resources.files("reserver.ui") / "documents.d.ts").read_text()
    bodies = dict(re.findall(r"export interface (\w+) \{\n(.*?)\n\}", types, re.DOTALL))
    move = {"metadata": {"name": "m", "namespace": "shop"}}
    for name, found in (
        ("Reservation", documents.reservation(info(), ReservationWords())),
        ("Node", documents.node(NodeCapacity("n", {}, 0), {})),
        ("Move", documents.move(move)),
        ("Window", documents.window(window(), "")),
    ):
        assert re.findall(r"^  (\w+)\??:", bodies[name], re.MULTILINE) == [*found]


def test_slots_that_are_over_are_spread_over_their_nodes() -> None:
    past = PastReservation(
        name="job", id="ml/job", owner_namespace="ml", owners="ml/job/train",
        outcome=Outcome.CLAIMED, since=AT, ended=AT, expires_at=None, nodes=("a", "b"),
        resources={"cpu": "1"}, slots=3, claimed=3, claims=(),
    )  # fmt: skip
    assert documents.past(past)["nodes"] == [["a", 2], ["b", 1]]


def test_a_node_has_its_amounts_and_its_first_labels() -> None:
    amounts = {"cpu": ResourceAmounts("8", "500m", "2", "5500m", "300m")}
    labels = {f"l{number}": "" for number in range(100)}
    found = documents.node(NodeCapacity("n", amounts, 0), labels)
    assert (found["allocatable"], found["held"]) == ({"cpu": 8000}, {"cpu": 2000})
    assert found["borrowed"] == {"cpu": 300}
    assert len(found["labels"]) == 64


def window(name: str = "disks", **fields: Any) -> Window:
    period = MaintenancePeriod(AT.timestamp(), AT.timestamp() + 7200)
    return Window(name=name, uid="u", period=period, **fields)


def test_a_window_begins_to_empty_its_nodes_before_its_start() -> None:
    found = documents.window(window(drain_s=3600), "1 Draining")
    starts = AT.timestamp() * 1000
    assert (found["drains"], found["starts"]) == (starts - 3_600_000, starts)
    assert found["ends"] == starts + 7_200_000
    assert found["progress"] == "1 Draining"


def test_windows_have_the_nodes_that_they_name_or_select() -> None:
    zone = label_selector(LabelSelector({"zone": "a"}, []))
    windows = [window(nodes=frozenset({"n1", "n9"})), window("zone", selector=zone)]
    labels = {"n1": {"zone": "a"}, "n2": {"zone": "a"}, "n3": {}}
    assert documents.windows_by_node(windows, labels) == {
        "n1": ["disks", "zone"],
        "n2": ["zone"],
        "n9": ["disks"],
    }


@pytest.mark.parametrize("status", [{}, None, {"to": "n2", "phase": "Evicting"}])
def test_a_move_may_have_no_status_yet(status: Any) -> None:
    move = {
        "metadata": {"name": "m", "namespace": "shop", "creationTimestamp": "2026-11-24T12:00:00Z"},
        "spec": {"pod": {"name": "web-0"}, "to": {"node": "n2"}},
        "status": status,
    }
    found = documents.move(move)
    assert (found["pod"], found["to"]) == ("web-0", "n2")
