"""A Reserver that reads one kind of store, and its successor."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, Self

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
from tests.unit.stores import companions, objects
from tests.unit.stores.companions import MISSING
from tests.unit.stores.objects import written
from tests.unit.stores.test_object_cache import made

W1 = node("worker-1", cpu="8", memory="64Gi")
LABELS = {"app": "web"}
OWNED: dict[str, Any] = {
    "owners": [{"selector": {"matchLabels": LABELS}}],
    "slots": 2,
    "resources": {"cpu": "2"},
    "node": "worker-1",
}
Act = Callable[["Pair"], None]


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
        """Start at a moment."""
        self.now = now
        self.state.is_complete = self.state.snapshot.lending.is_on = True
        self.state.ledger.advance(now)

    @abstractmethod
    def say(self, spec: dict[str, Any]) -> None:
        """Write the reservation, as a user does."""

    @abstractmethod
    async def settle(self) -> None:
        """Write the due statuses and edits, and read them back."""

    @abstractmethod
    async def successor(self, pods: Iterable[Pod]) -> Self:
        """Return a Reserver that starts now."""

    def look(self) -> None:
        """Place the reservation if it has no node, as the placer does."""
        ledger = self.state.ledger
        ledger.advance(self.now, most=None)
        kept, slots = ledger.wants_place(self.ref) if ledger.get(self.ref) else ((), 0)
        if slots:
            ledger.place(self.ref, (Part("worker-1", slots + sum(part.slots for part in kept)),))

    def has_read(self, pods: Iterable[Pod]) -> None:
        """Continue with the claims of pods; the API server has no history here."""
        for each in pods:
            self.state.pod_seen(each)
        self.state.ledger.past.end()
        self.state.ledger.advance(self.now, most=None)

    def says(self) -> dict[str, Any]:
        """Return the holds, and the pods that have room."""
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
        reported = {
            "phase": phase,
            "held": held(self.state, "worker-1"),
            "claimed": ledger.claimed(ref),
            "shown": known.next_occurrences,
            "idle since": ledger.idle_since(ref),
        }
        return reported | has_room


class OfObjects(objects.World, Reserver):
    """A Reserver that reads a Reservation."""

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
    """A Reserver that reads an entry of a ConfigMap."""

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
        if edit is not None and edit.value is not None:  # An ended entry may stay for a while.
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
    """The running Reserver, and the objects of the API server for its successor."""

    def __init__(self, running: Reserver, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.running = running
        self.running.state.ledger.past.end()
        self.pods: dict[str, Pod] = {}
        self.bound = 0
        self.write(spec)

    def write(self, spec: dict[str, Any]) -> None:
        """Write the spec, as a user does."""
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
        """Remove a pod, if it exists."""
        if gone := self.pods.pop(name, None):
            self.running.state.pod_gone(gone.name)

    async def go(self, moment: float | Moment) -> None:
        """Advance the clock, and carry out all writes."""
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
