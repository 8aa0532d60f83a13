"""Passes and writes of statuses in which one thing raises an error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from reserver.autoscaling import controller as buffers_module
from reserver.autoscaling.controller import Buffers
from reserver.base.pacer import Pacer, Steps, outcome
from reserver.cluster.pod import PodName
from reserver.extender import placing_pass
from reserver.k8s import events as events_module
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import ConfigMapObject, Metadata, encode
from reserver.moves import controller as mover_module
from reserver.moves.advance import MoveStep, advance
from reserver.moves.model import Move
from reserver.moves.observation import Observation
from reserver.provisioning.booking import Booking
from reserver.provisioning.controller import Provisioner
from reserver.provisioning.decide import BookingObservation as SeenOfRequest
from reserver.provisioning.decide import BookingState
from reserver.provisioning.model import ProvisioningRequest
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling import placement
from reserver.scheduling.buffers import Need, need
from reserver.scheduling.state import State
from reserver.scheduling.wake import Wake
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.configmap.companion import Companion
from reserver.stores.quota_objects import QuotaCache, QuotaWriter
from reserver.stores.recovery import PodPast
from tests.builders import NOW, held, pod, reservation, state_of
from tests.unit.base.quarantined import POISON, poisoned
from tests.unit.extender import test_cleaner as cleaning
from tests.unit.extender import test_waker as waking
from tests.unit.extender.placer import world as placing
from tests.unit.k8s.fakes import PatientClient, ScriptedClient
from tests.unit.k8s.watch import test_history as past
from tests.unit.moves.world import World
from tests.unit.provisioning.test_requests import item as a_request
from tests.unit.stores import companions
from tests.unit.stores import objects as acknowledging
from tests.unit.stores.test_object_cache import made
from tests.waiting import until


async def in_the_placer(patch: pytest.MonkeyPatch) -> None:
    world = placing.World(placing.BIG)
    raises = poisoned(placement.placing, lambda one, *_: one.ref.key == POISON)
    patch.setattr(placing_pass, "placing", raises)
    world.write(a=placing.SPEC, poison=placing.SPEC, z=placing.SPEC | {"resources": {"cpu": "2"}})
    await world.look()
    assert (world.placed("a"), world.placed("z")) == ({"big": 1}, {"big": 1})


async def in_the_waker(patch: pytest.MonkeyPatch) -> None:
    sends = waking.Sends()
    waker = waking._waker(sends)
    asking = [pod(name, cpu="1") for name in ("a", POISON, "z")]
    world = waking._waiting(*asking)
    raises = poisoned(Wake.judge, lambda _, uid: uid == asking[1].uid)
    patch.setattr(Wake, "judge", raises)
    waking._free(world, waker, 0)
    await waker.look(world, Pacer())
    assert [effect.pod for effect in sends.sent] == [asking[0], asking[2]]


async def in_the_cleaner(patch: pytest.MonkeyPatch) -> None:
    client = ScriptedClient({})
    tidying = cleaning.Tidying(client, a=cleaning.OVER, poison=cleaning.OVER, z=cleaning.OVER)
    raises = poisoned(ConfigMapCache.due_edit, lambda _, at, __: at.key == POISON)
    patch.setattr(ConfigMapCache, "due_edit", raises)
    await tidying.tidy()
    assert cleaning.patched(client) == ["a+z"]


async def in_a_status(patch: pytest.MonkeyPatch) -> None:
    raises = poisoned(ShortNodes.status, lambda _, one, __=None, **___: one.ref.key == POISON)
    patch.setattr(ShortNodes, "status", raises)
    world = companions.World()
    world.put(a=companions.spec(), poison=companions.spec(), z=companions.spec())
    _, create = await world.write(companions.MISSING, companions.answer(1))
    phases = {key: json.loads(text)["phase"] for key, text in create.body["data"].items()}
    assert phases == {"a": "Active", "poison": "Invalid", "z": "Active"}
    assert held(world.state, "worker-1") == 6000


async def in_the_status_of_an_object(patch: pytest.MonkeyPatch) -> None:
    raises = poisoned(ShortNodes.status, lambda _, one, *__: one.ref.key == POISON)
    patch.setattr(ShortNodes, "status", raises)
    world = acknowledging.World()
    world.put(made("a"), made(POISON), made("z"))
    await world.write()
    (status,) = await world.write()
    assert status["phase"] == "Invalid"
    assert "it still holds as before" in acknowledging.condition(status, "Valid")[2]


async def in_a_quota(patch: pytest.MonkeyPatch) -> None:
    admitted: list[str] = []
    ledger = State().ledger

    def admit(namespace: str) -> Steps:
        if namespace == POISON:
            raise ZeroDivisionError
        admitted.append(namespace)
        yield

    patch.setattr(ledger, "admit", admit)
    writer = QuotaWriter(ScriptedClient(), lambda: NOW)
    for namespace in ("a", POISON, "z"):
        writer.changed(namespace)
    await writer.settle(ledger, Pacer())
    assert admitted == ["a", "z"]


async def in_the_status_of_a_quota(patch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    store = QuotaCache(State().ledger, lambda *_: None)

    def due(namespace: str) -> tuple[()]:
        asked.append(namespace)
        return ()

    patch.setattr(store, "due", poisoned(due, lambda namespace: namespace == POISON))
    writer = QuotaWriter(ScriptedClient(), lambda: NOW)
    await writer.write(store, ("a", POISON, "z"))
    assert asked == ["a", "z"]


async def in_a_companion(patch: pytest.MonkeyPatch) -> None:
    raises = poisoned(Companion.read_if_due, lambda self, _: self.store[1] == "store")
    patch.setattr(Companion, "read_if_due", raises)
    world = companions.World()
    world.put(a=companions.spec())
    outcome(
        world.store.put(
            ConfigMapObject(Metadata("other", "shop", "uid-2"), {"b": companions.spec()})
        )
    )
    requests = await world.write(companions.MISSING, companions.answer(1, uid="uid-2"))
    assert [request.verb for request in requests] == ["get", "create"]


async def in_an_event(patch: pytest.MonkeyPatch) -> None:
    client = PatientClient({})
    recorder = Recorder(client, lambda: NOW)
    raises = poisoned(events_module._Event.body, lambda self, _: self.message == POISON)
    patch.setattr(events_module._Event, "body", raises)
    for message in (POISON, "other"):
        recorder.warn(Metadata("store", "shop", "uid"), "Reason", message)
    running = asyncio.create_task(recorder.run())
    await until(lambda: client.requests)
    running.cancel()
    assert [request.body["message"] for request in client.requests] == ["other"]


async def in_the_history(patch: pytest.MonkeyPatch) -> None:
    raises = poisoned(PodPast.take, lambda _, event: b"poison" in bytes(event.object))
    patch.setattr(PodPast, "take", raises)
    broken = past.shown("DELETED", 940)
    broken["object"]["metadata"]["name"] = POISON
    lines = [b"", past.bookmark(900), broken, past.shown("DELETED", 950, past.NAMED)]
    _, ledger = await past.read(past.now(1000), [*lines, past.bookmark(1000)])
    assert ledger.phase(past.NAMED.ref) is Phase.CLAIMED


async def in_a_buffer(patch: pytest.MonkeyPatch) -> None:
    def poisoned(at: Ref, state: State) -> Need:
        if at.key == POISON:
            raise ZeroDivisionError
        return need(at, state)

    patch.setattr(buffers_module, "need", poisoned)
    waiting = [reservation(key, node="", cpu="1") for key in (POISON, "a")]
    buffers = Buffers(ScriptedClient(), lambda: NOW, lambda _: None)
    state = state_of(*waiting)
    await buffers.begin(state, Pacer())
    await buffers.look(state, Pacer())
    assert buffers.writer.backlog.depth == 1


async def in_a_move(patch: pytest.MonkeyPatch) -> None:
    def poisoned(move: Move, seen: Observation, now: float) -> MoveStep:
        if move.name.name == POISON:
            raise ZeroDivisionError
        return advance(move, seen, now)

    patch.setattr(mover_module, "advance", poisoned)
    world = World()
    await world.start()
    world.move(name=POISON)
    world.move()
    assert (await world.settle())["reason"] == "Landed"


class _Requests(ApiClient):
    """Accepts conditions of requests."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        assert content_type == MERGE_PATCH
        sent = json.loads(encode(body))
        self.said = sent["status"]["conditions"]
        name = path.removesuffix("/status").rpartition("/")[2]
        there = json.loads(encode(a_request(name, revision=2)))
        return encode(there | {"status": sent["status"]})


class _Held(Booking):
    """Holds room for all requests, and raises an error for one request."""

    def __init__(self) -> None:
        pass

    def look(self, request: ProvisioningRequest) -> SeenOfRequest:
        if request.name.name == POISON:
            raise ZeroDivisionError
        return SeenOfRequest((BookingState.HELD,), "2030-01-01T00:00:00Z")


async def _up_to_date() -> bool:
    return True


async def in_a_provisioning_request(_: pytest.MonkeyPatch) -> None:
    api = _Requests()
    provisioner = Provisioner(api, lambda: NOW, _Held(), _up_to_date)
    for name in (POISON, "fine"):
        provisioner.requests.put(a_request(name))
        await provisioner.step(PodName("shop", name))
    assert [each["type"] for each in api.said] == ["Accepted", "Provisioned"]
