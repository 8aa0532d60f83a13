"""A new leader holds the same as the last one, for each option and each critical moment.

A Reserver goes through moments. At each of them another one starts, from the objects and pods alone
(as after a restart, or as a standby does), and says the same to a stranger, an owner and a
borrower.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Self
from zoneinfo import ZoneInfo

import pytest

from reserver.base.clock import Moment
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import decode
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Ref
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.stores.object.codec import ReservationObject
from tests.builders import BORROWER, held, node, pod
from tests.unit.k8s.fakes import Request, ScriptedClient
from tests.unit.stores import companions, test_object_status
from tests.unit.stores.companions import MISSING
from tests.unit.stores.test_object_cache import made
from tests.unit.stores.test_object_status import written

W1 = node("worker-1", cpu="8", memory="64Gi")
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


class Reserver(ABC):
    """A Reserver that reads one kind of store and pods, and writes statuses.

    Attributes:
        ref: of the one reservation that there is.
        now: unix seconds.
    """

    ref: ClassVar[Ref]
    now: float
    state: State

    def begin(self, now: float) -> None:
        """Begin at a moment."""
        self.now = now
        self.state.is_complete = self.state.snapshot.lending.is_on = True
        self.state.ledger.advance(now)

    @abstractmethod
    def say(self, spec: dict[str, Any]) -> None:
        """Have it written, as a person does."""

    @abstractmethod
    async def settle(self) -> None:
        """Write what is to be written, and see it."""

    @abstractmethod
    async def successor(self, pods: Iterable[Pod]) -> Self:
        """Return one that starts now."""

    def look(self) -> None:
        """Place what has no place, as the placer does."""
        ledger = self.state.ledger
        ledger.advance(self.now, most=None)
        kept, slots = ledger.wants_place(self.ref) if ledger.get(self.ref) else ((), 0)
        if slots:
            ledger.place(self.ref, (Part("worker-1", slots + sum(part.slots for part in kept)),))

    def has_read(self, pods: Iterable[Pod]) -> None:
        """Go on from what pods and the API server's history say, of which there is none."""
        for each in pods:
            self.state.pod_seen(each)
        self.state.ledger.past.end()
        self.state.ledger.advance(self.now, most=None)

    def says(self) -> dict[str, Any]:
        """Return what holds now, and for whom there is room."""
        ledger, ref = self.state.ledger, self.ref
        asking = {
            "stranger": pod("stranger", cpu="6"),
            "owner": pod("asking", cpu="2", labels=LABELS),
            "borrower": pod("borrower", cpu="6", constraints=BORROWER),
        }
        has_room = {
            name: bool(filter_nodes(each, ["worker-1"], self.state, self.now).nodes)
            for name, each in asking.items()
        }
        known, phase = ledger.get(ref), ledger.phase(ref)
        if known is None or ledger.is_over(ref):  # By whom it was claimed, history says.
            return {"phase": "over", "held": held(self.state, "worker-1")} | has_room
        told = {
            "phase": phase,
            "held": held(self.state, "worker-1"),
            "claimed": ledger.claimed(ref),
            "shown": known.next_occurrences,
            "idle since": ledger.idle_since(ref),
        }
        return told | has_room


class OfObjects(test_object_status.World, Reserver):
    """One that reads a Reservation."""

    ref = Ref.of_object("shop", "web")

    def __init__(self, now: float) -> None:
        super().__init__(W1)
        self.generation = 0
        self.begin(now)

    def say(self, spec: dict[str, Any]) -> None:
        self.generation += 1
        status, revision = None, 1
        for before in self.client.objects.values():
            status = json.loads(bytes(before.status)) if before.status else None
            revision = before.metadata.revision + 1
        more: dict[str, Any] = {"revision": revision, "generation": self.generation}
        self.put(made("web", status=status, raw=json.dumps(spec), **more))

    async def settle(self) -> None:
        self.look()
        await self.write()
        for request in self.client.requests:
            path = request.path.removesuffix("/status")
            before = self.client.objects[path]
            answer = written(before, before.metadata.revision + 1, request.body["status"])
            self.client.objects[path] = decode(ReservationObject, answer)

    async def successor(self, pods: Iterable[Pod]) -> Self:
        after = type(self)(self.now)
        after.put(*self.client.objects.values())
        after.has_read(pods)
        return after


class CompanionClient(ScriptedClient):
    """An API server that has a companion.

    Attributes:
        companion: as it is now; None before it is written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.companion: dict[str, Any] | None = None

    async def _next(self, request: Request) -> Any:
        there, body = self.companion, request.body
        if request.verb == "create":
            there = deepcopy(body)
        elif there is None:
            raise MISSING
        elif request.verb == "patch":
            metadata = there["metadata"] | body["metadata"]
            data = {**there["data"], **body["data"]}
            data = {key: text for key, text in data.items() if text is not None}
            there = {**there, "metadata": metadata, "data": data}
        if request.verb != "get":
            version = int(there["metadata"].get("resourceVersion", 0)) + 1
            there["metadata"]["resourceVersion"] = str(version)
        self.companion = there
        return there


class OfEntries(companions.World, Reserver):
    """One that reads an entry of a ConfigMap."""

    ref = Ref("shop", "store", "web")

    client: CompanionClient

    def __init__(self, now: float) -> None:
        super().__init__(things=())
        self.client = CompanionClient()
        self.restart()
        self.state.node_seen(W1)
        self.text, self.version = "", 0
        self.begin(now)

    def say(self, spec: dict[str, Any]) -> None:
        self.text = json.dumps(spec)
        self._show()

    def _show(self) -> None:
        self.version += 1
        self.put(web=self.text, version=str(self.version))

    async def settle(self) -> None:
        self.look()
        edit = self.store.due_edit(self.ref, self.now)
        if edit is not None and edit.value is not None:  # What is over may stay for a while.
            self.text = edit.value
            self._show()
        await self.write()

    async def successor(self, pods: Iterable[Pod]) -> Self:
        after = type(self)(self.now)
        after.client.companion = deepcopy(self.client.companion)
        after.text, after.version = self.text, self.version
        after.list_(str(after.version), web=after.text)
        await after.writer.recall(after.state.ledger)
        after.has_read(pods)
        return after


class Pair:
    """The one that runs, and what the API server has for the next one."""

    def __init__(self, running: Reserver, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.running = running
        self.running.state.ledger.past.end()
        self.pods: dict[str, Pod] = {}
        self.bound = 0
        self.write(spec)

    def write(self, spec: dict[str, Any]) -> None:
        """Write the spec, as a person does."""
        self.running.say({name: each for name, each in (OWNED | spec).items() if each is not None})

    def bind(self, name: str) -> None:
        """Bind an owner onto its seat, if it has one."""
        owner = pod(name, cpu="2", labels=LABELS)
        if seats := self.running.state.ledger.seats(owner):
            claims = [] if seats[0].is_whole else [seats[0]]
            bound = pod(name, cpu="2", labels=LABELS, node="worker-1", claims=claims)
            self.bound += 1
            self.pods[name] = replace(bound, revision=self.bound + 1_000)
            self.running.state.pod_seen(self.pods[name])

    def end(self, name: str) -> None:
        """Have a pod go, if it came."""
        if gone := self.pods.pop(name, None):
            self.running.state.pod_gone(gone.name)

    async def go(self, moment: float | Moment) -> None:
        """Let time pass, and everything be written."""
        self.running.now = moment
        await self.running.settle()


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


Form = type[OfObjects] | type[OfEntries]
of_each_form = pytest.mark.parametrize("form", [OfObjects, OfEntries], ids=["object", "entry"])


async def travel(form: Form, spec: dict[str, Any], journey: Journey) -> list[dict[str, Any]]:
    """Go through a journey; return what was said at each moment, the same by a successor."""
    moments = list(journey)
    pair, told = Pair(form(moments[0][0] - DAY), spec), []
    await pair.running.settle()
    for moment, act in moments:
        await pair.go(moment)
        if act is not None:
            act(pair)
            await pair.running.settle()
        told.append(pair.running.says())
        after = await pair.running.successor(pair.pods.values())
        assert after.says() == told[-1], (moment - BEGIN) / HOUR
    return told


@of_each_form
@pytest.mark.parametrize("journey", JOURNEYS)
@pytest.mark.parametrize("option", OPTIONS)
async def test_a_successor_says_the_same_at_each_moment(
    form: Form, option: str, journey: str
) -> None:
    told = await travel(form, OPTIONS[option], JOURNEYS[journey])
    assert any(each["phase"] in {"Active", "Claimed"} for each in told)


@of_each_form
@pytest.mark.parametrize("start", [GAP, OVERLAP], ids=["gap", "overlap"])
@pytest.mark.parametrize("option", [name for name in OPTIONS if name not in {"once", "until"}])
async def test_so_it_does_where_clocks_change(form: Form, option: str, start: float) -> None:
    spec = OPTIONS[option]
    skip = {"skip": ["2030-04-01T02:30:00+02:00"]} if option == "skip" else {}
    kept = {name: each for name, each in spec["schedule"].items() if name == "lead"}
    told = await travel(form, spec | {"schedule": AT_HALF_PAST_2 | kept | skip}, around(start))
    begins = 0 if option == "lead" else 2
    assert [each["phase"] == "Pending" for each in told[:3]] == [n < begins for n in range(3)]
    assert told[5]["phase"] == "Pending"
