"""Whoever takes over holds what the one before held, for each option, at each moment that matters.

A Reserver goes through moments. At each of them another one starts, from the objects and pods alone
(as after a restart, or as a standby does), and says the same to a stranger, an owner and a
borrower.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reserver.base.clock import Moment
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import decode
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Ref
from reserver.scheduling.filter import filter_nodes
from reserver.stores.object.codec import ReservationObject
from tests.builders import BORROWER, held, node, pod
from tests.unit.stores import test_object_status
from tests.unit.stores.test_object_cache import made
from tests.unit.stores.test_object_status import written

W1 = node("worker-1", cpu="8", memory="64Gi")
REF = Ref.of_object("shop", "web")
BERLIN = ZoneInfo("Europe/Berlin")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
LABELS = {"app": "web"}


def berlin(*wall: int) -> float:
    return datetime(*wall, tzinfo=BERLIN).timestamp()  # type: ignore[arg-type, misc]


BEGIN = berlin(2030, 3, 18, 22)
END = BEGIN + 8 * HOUR
NIGHTS = {"cron": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin"}
AT_HALF_PAST_2 = {"cron": "30 2 * * *", "duration": "2h", "timeZone": "Europe/Berlin"}
GAP, OVERLAP = berlin(2030, 3, 31, 3), berlin(2030, 10, 27, 2, 30)
"""The end of the gap in which a clock shows no 2:30, and the first 2:30 of a day with two."""

OWNED: dict[str, Any] = {
    "owners": [{"selector": {"matchLabels": LABELS}}],
    "slots": 2,
    "resources": {"cpu": "2"},
    "node": "worker-1",
}
OPTIONS: Mapping[str, dict[str, Any]] = {
    "once": {"startsAt": "2030-03-18T21:00:00Z", "expiresAt": "2030-03-19T05:00:00Z"},
    "recurring": {"schedule": NIGHTS},
    "lead": {"schedule": NIGHTS | {"lead": "1h"}},
    "until": {"schedule": NIGHTS | {"until": "2030-03-18T21:00:00Z"}},
    "skip": {"schedule": NIGHTS | {"skip": ["2030-03-19T22:00:00+01:00"]}},
    "reusable": {"schedule": NIGHTS, "reusable": True},
    "idle": {"schedule": NIGHTS, "releaseIfIdle": "20m"},
    "lend": {"schedule": NIGHTS, "lend": {"belowPriority": 100}},
    "refill": {"schedule": NIGHTS, "refill": True, "refillUpTo": 3, "node": None},
    "whole": {
        "schedule": NIGHTS,
        "nodes": {"count": 1},
        **dict.fromkeys(("node", "slots", "resources")),
    },
}

Act = Callable[["Pair"], None]
Journey = Iterable[tuple[float | Moment, Act | None]]


class Reserver(test_object_status.World):
    """A Reserver that reads objects and pods, and writes statuses."""

    def __init__(self, now: float) -> None:
        super().__init__(W1)
        self.now = now
        self.state.snapshot.lending.is_on = True
        self.state.ledger.advance(now)

    def look(self) -> None:
        """Place what has no place, as the placer does."""
        ledger = self.state.ledger
        kept, slots = ledger.wants_place(REF) if ledger.get(REF) else ((), 0)
        if slots:
            ledger.place(REF, (Part("worker-1", slots + sum(part.slots for part in kept)),))

    def says(self) -> dict[str, Any]:
        """Return what holds now, and for whom there is room."""
        ledger, now = self.state.ledger, self.now
        asking = {
            "stranger": pod("stranger", cpu="6"),
            "owner": pod("asking", cpu="2", labels=LABELS),
            "borrower": pod("borrower", cpu="6", constraints=BORROWER),
        }
        has_room = {
            name: bool(filter_nodes(each, ["worker-1"], self.state, now).nodes)
            for name, each in asking.items()
        }
        known, phase = ledger.get(REF), ledger.phase(REF)
        if known is None or ledger.is_over(REF):  # By whom it was claimed, history says.
            return {"phase": "over", "held": held(self.state, "worker-1")} | has_room
        told = {
            "phase": phase,
            "held": held(self.state, "worker-1"),
            "claimed": ledger.claimed(REF),
            "shown": known.next_occurrences,
            "idle since": ledger.idle_since(REF),
        }
        return told | has_room


class Pair:
    """The one that runs, and what the API server has for the next one."""

    def __init__(self, spec: dict[str, Any], now: float) -> None:
        self.spec = spec
        self.running = Reserver(now)
        self.running.state.ledger.past.end()
        self.pods: dict[str, Pod] = {}
        self.generation = 0
        self.write(spec)

    def write(self, spec: dict[str, Any]) -> None:
        """Write the spec, as a person does."""
        self.generation += 1
        said = self.objects[0].status if self.objects else None
        status = json.loads(bytes(said)) if said else None
        revision = self.objects[0].metadata.revision + 1 if self.objects else 1
        more: dict[str, Any] = {"revision": revision, "generation": self.generation}
        said_now = {name: each for name, each in (OWNED | spec).items() if each is not None}
        self.running.put(made("web", status=status, raw=json.dumps(said_now), **more))

    @property
    def objects(self) -> list[ReservationObject]:
        return list(self.running.client.objects.values())

    def bind(self, name: str) -> None:
        """Bind an owner onto its seat, if it has one."""
        owner = pod(name, cpu="2", labels=LABELS)
        if seats := self.running.state.ledger.seats(owner):
            claims = [] if seats[0].is_whole else [seats[0]]
            bound = pod(name, cpu="2", labels=LABELS, node="worker-1", claims=claims)
            self.pods[name] = bound
            self.running.state.pod_seen(bound)

    def end(self, name: str) -> None:
        """Have a pod go, if it came."""
        if gone := self.pods.pop(name, None):
            self.running.state.pod_gone(gone.name)

    async def go(self, moment: float | Moment) -> None:
        """Let time pass, and everything be written."""
        self.running.now = moment
        await self.settle()

    async def settle(self) -> None:
        running = self.running
        running.state.ledger.advance(running.now, most=None)
        running.look()
        await running.write()
        for request in running.client.requests:
            path = request.path.removesuffix("/status")
            before = running.client.objects[path]
            answer = written(before, before.metadata.revision + 1, request.body["status"])
            running.client.objects[path] = decode(ReservationObject, answer)

    def successor(self) -> Reserver:
        """Return one that starts now."""
        after = Reserver(self.running.now)
        after.put(*self.objects)
        for each in self.pods.values():
            after.state.pod_seen(each)
        after.state.ledger.past.end()
        after.state.ledger.advance(after.now, most=None)
        return after


def bind(name: str) -> Act:
    return lambda pair: pair.bind(name)


def end(name: str) -> Act:
    return lambda pair: pair.end(name)


def edit(**schedule: Any) -> Act:
    def act(pair: Pair) -> None:
        if "schedule" in pair.spec:
            pair.spec = pair.spec | {"schedule": pair.spec["schedule"] | schedule}
            pair.write(pair.spec)

    return act


BACK, FORTH = -2 * HOUR, 3 * DAY
JOURNEYS: Mapping[str, Journey] = {
    "start and end": [
        (BEGIN - HOUR - 1, None),
        (BEGIN - HOUR, bind("early")),
        (BEGIN - 1, None),
        (BEGIN, bind("a")),
        (BEGIN + MINUTE, bind("b")),
        (BEGIN + HOUR, end("a")),
        (BEGIN + HOUR + 20 * MINUTE, bind("c")),
        (END - 1, None),
        (END, end("b")),
        (END + 1, None),
        (BEGIN + DAY, bind("d")),
        (END + DAY, None),
        (BEGIN + 2 * DAY, bind("e")),
        (END + 2 * DAY, None),
    ],
    "nobody comes": [
        (BEGIN, None),
        (BEGIN + 20 * MINUTE - 1, None),
        (BEGIN + 20 * MINUTE, None),
        (BEGIN + DAY, None),
        (BEGIN + DAY + 20 * MINUTE, None),
    ],
    "left out, suspended, moved": [
        (BEGIN, bind("a")),
        (BEGIN + HOUR, edit(skip=["2030-03-18T22:00:00+01:00"])),
        (BEGIN + DAY, bind("b")),
        (BEGIN + DAY + HOUR, edit(suspend=True)),
        (END + DAY, None),
        (BEGIN + 2 * DAY, edit(suspend=False)),
        (BEGIN + 2 * DAY + HOUR, edit(cron="0 20 * * *", duration="10h")),
        (BEGIN + 3 * DAY, None),
    ],
    "the clock is set back": [
        (BEGIN + HOUR, bind("a")),
        (Moment(BEGIN + HOUR + BACK, 1), None),
        (Moment(BEGIN, 1), bind("b")),
        (Moment(END, 1), None),
        (Moment(END + BACK, 2), bind("c")),
        (Moment(END, 2), None),
    ],
    "the clock is set forward and back": [
        (BEGIN, bind("a")),
        (BEGIN + FORTH, bind("b")),
        (Moment(BEGIN + MINUTE, 1), bind("c")),
        (Moment(END, 1), None),
        (Moment(BEGIN + DAY, 1), None),
        (Moment(BEGIN + FORTH, 1), None),
    ],
}


def around(start: float) -> Journey:
    """Return a journey around an occurrence of two hours on a day on which clocks change."""
    return [
        (start - HOUR, None),
        (start - 1, None),
        (start, bind("a")),
        (start + HOUR, bind("b")),
        (start + 2 * HOUR - 1, end("a")),
        (start + 2 * HOUR, None),
        (start + DAY, None),
    ]


async def travel(spec: dict[str, Any], journey: Journey) -> list[dict[str, Any]]:
    """Go through a journey; return what was said at each moment, the same by a successor."""
    moments = list(journey)
    pair, told = Pair(spec, moments[0][0] - DAY), []
    await pair.settle()
    for moment, act in moments:
        await pair.go(moment)
        if act is not None:
            act(pair)
            await pair.settle()
        told.append(pair.running.says())
        assert pair.successor().says() == told[-1], (moment - BEGIN) / HOUR
    return told


@pytest.mark.parametrize("journey", JOURNEYS)
@pytest.mark.parametrize("option", OPTIONS)
async def test_a_successor_says_the_same_at_each_moment(option: str, journey: str) -> None:
    told = await travel(OPTIONS[option], JOURNEYS[journey])
    assert any(each["phase"] in {"Active", "Claimed"} for each in told)


@pytest.mark.parametrize("start", [GAP, OVERLAP], ids=["gap", "overlap"])
@pytest.mark.parametrize("option", [name for name in OPTIONS if name not in {"once", "until"}])
async def test_so_it_does_where_clocks_change(option: str, start: float) -> None:
    spec = OPTIONS[option]
    skip = {"skip": ["2030-04-01T02:30:00+02:00"]} if option == "skip" else {}
    kept = {name: each for name, each in spec["schedule"].items() if name == "lead"}
    told = await travel(spec | {"schedule": AT_HALF_PAST_2 | kept | skip}, around(start))
    begins = 0 if option == "lead" else 2
    assert [each["phase"] == "Pending" for each in told[:3]] == [n < begins for n in range(3)]
    assert told[5]["phase"] == "Pending"
