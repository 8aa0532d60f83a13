"""What raises while it is judged costs itself: shown by raising in each component that judges."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast, get_args

import grpc
import msgspec
import pytest
from structlog.testing import capture_logs

from reserver.cluster.pod import Pod, PodName
from reserver.errors import LeadershipLost
from reserver.kube.api.client import MERGE_PATCH, ApiClient
from reserver.kube.loops import buffers as buffers_module
from reserver.kube.loops import events as events_module
from reserver.kube.loops import placer as placer_module
from reserver.kube.loops.buffers import Buffers
from reserver.kube.loops.events import Recorder
from reserver.kube.loops.placer import Placer
from reserver.kube.loops.quotas import QuotaWriter
from reserver.kube.loops.requeue import Requeue
from reserver.kube.migration import mover as mover_module
from reserver.kube.provisioning.booking import Booking
from reserver.kube.provisioning.provisioner import Provisioner
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.configmap.companion import Companion
from reserver.kube.stores.object import reading as objects_module
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.watch.cluster import node_view, pod_view
from reserver.kube.watch.quotas import QuotaCache
from reserver.migration.advance import Step, advance
from reserver.migration.move import Move
from reserver.migration.seen import Seen
from reserver.pacer import Pacer, Steps, outcome
from reserver.provisioning.advance import Hold
from reserver.provisioning.advance import Seen as SeenOfRequest
from reserver.provisioning.request import Request as ProvisioningRequest
from reserver.quarantine import Component, quarantined
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.reservations.terms import Phase
from reserver.scheduling import placement
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.buffers import Need, need
from reserver.scheduling.effects import Effect, Steer
from reserver.scheduling.state import State
from reserver.scheduling.wake import Wake
from reserver.server.answer import Answer, Handler, text
from reserver.server.door import answer
from reserver.server.request import Request
from reserver.server.rpc import calls as calls_module
from reserver.server.rpc.access import Call
from reserver.server.rpc.catalogue import Catalogue, ReservationFeed
from reserver.v1 import reservation_pb2 as pb
from reserver.wire.extender import ExtenderBindingArgs
from reserver.wire.k8s.nodes import NodeObject
from reserver.wire.k8s.objects import ConfigMapObject, Metadata, encode
from reserver.wire.k8s.pods import PodObject
from reserver.wire.past import PodPast
from reserver.wire.spec import specform
from reserver.wire.spec.object import read_object
from tests.builders import NOW, held, node, pod, ref, reservation, state_of
from tests.unit.kube import test_cleaner as cleaning
from tests.unit.kube import test_history as past
from tests.unit.kube import test_placer as placing
from tests.unit.kube import test_waker as waking
from tests.unit.kube.fakes import PatientClient, ScriptedClient
from tests.unit.kube.migration.world import World
from tests.unit.kube.provisioning.test_requests import item as a_request
from tests.unit.kube.stores import companions as telling
from tests.unit.kube.stores import test_object_status as acknowledging
from tests.unit.kube.stores.test_object_cache import made
from tests.unit.server.conftest import Served

Faults = Counter[Component]
POISON = "poison"


def spec(owner: str, cpu: str = "1") -> str:
    fields = {"owners": [{"pod": {"name": owner}}], "resources": {"cpu": cpu}}
    return json.dumps(fields | {"node": "worker-1", "ttl": 0})


def raw(document: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(document).encode())


def raw_pod(name: str, on: str = "worker-1", cpu: str = "1") -> msgspec.Raw:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7"}
    return raw({"metadata": metadata, "spec": {"nodeName": on, "containers": containers}})


def poisoned(function: Callable[..., Any], names: Callable[..., bool]) -> Callable[..., Any]:
    """Return a function that raises for one of the things that it is called with."""

    def raises(*arguments: Any, **more: Any) -> Any:
        if names(*arguments, **more):
            raise ZeroDivisionError("poison")
        return function(*arguments, **more)

    return raises


@pytest.fixture
def state() -> State:
    return state_of(node("worker-1", cpu="8"), node("worker-2", cpu="8"), now=NOW)


class Told:
    """A store, and what it reported."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.said: list[str] = []
        self.store = ConfigMapCache(
            state.ledger, lambda: NOW, lambda _, problem: self.said.append(str(problem))
        )

    def put(self, **data: str) -> None:
        metadata = Metadata("store", "shop", "uid", "5")
        outcome(self.store.put(ConfigMapObject(metadata, data)))


@pytest.fixture
def told(state: State) -> Told:
    return Told(state)


def allows(state: State, cpu: str = "1", name: str = "stranger") -> bool:
    return judge_bind(pod(name, cpu=cpu), "worker-1", state, NOW).refusal is None


# What the mechanism does.


def test_a_fault_is_logged_once_with_its_traceback_and_counted_each_time(faults: Faults) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            with quarantined("placer", "one-of-many"):
                raise ZeroDivisionError
    assert len(logs) == 1
    assert logs[0]["what"] == "one-of-many"
    assert isinstance(logs[0]["exc_info"], ZeroDivisionError)
    assert faults.pop("placer") == 3


@pytest.mark.parametrize(
    "fault", [MemoryError, LeadershipLost, KeyboardInterrupt, asyncio.CancelledError]
)
def test_a_fault_of_the_process_goes_on(fault: type[BaseException]) -> None:
    with pytest.raises(fault), quarantined("placer", "one-of-many"):
        raise fault


# What becomes of objects of the cluster.


def test_a_pod_that_raises_costs_no_other_and_strangers_the_holds_of_its_node(
    state: State, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    state.ledger.put(reservation("r", owners=("owner",), node="worker-1", cpu="2"))
    monkeypatch.setattr(
        PodObject, "value", poisoned(PodObject.value, lambda it: it.metadata.name == POISON)
    )
    view = pod_view(state)
    for each in (raw_pod("a"), raw_pod(POISON), raw_pod("b")):
        outcome(view.changed(each))
    assert [name.name for name in state.pods] == ["a", "b"]
    assert not allows(state)
    assert allows(state, name="owner")
    assert judge_bind(pod("stranger", cpu="1"), "worker-2", state, NOW).refusal is None
    outcome(view.deleted(raw_pod(POISON)))
    assert allows(state)
    assert faults.pop("watch") == 2


def test_a_pod_in_doubt_closes_no_node_without_holds(
    state: State, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    monkeypatch.setattr(PodObject, "value", poisoned(PodObject.value, lambda _: True))
    outcome(pod_view(state).changed(raw_pod(POISON)))
    assert allows(state)
    assert faults.pop("watch") == 1


def test_a_pod_in_doubt_that_a_new_list_does_not_show_is_none_any_more(
    state: State, faults: Faults
) -> None:
    state.ledger.put(reservation("r", owners=("owner",), node="worker-1", cpu="2"))
    view = pod_view(state)
    outcome(view.changed(raw_pod("odd", cpu="?")))
    assert not allows(state)  # What is malformed is counted no less than what raises.
    view.list_began()
    outcome(view.list_ended(0))
    assert allows(state)
    assert not faults


def test_a_node_that_raises_takes_no_strangers_until_it_is_read(
    state: State, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    state.ledger.put(reservation("r", owners=("owner",), node="worker-1", cpu="2"))
    view = node_view(state)
    shown = raw(
        {"metadata": {"name": "worker-1"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}
    )
    with monkeypatch.context() as patch:
        patch.setattr(NodeObject, "value", poisoned(NodeObject.value, lambda _: True))
        outcome(view.changed(shown))
    assert not allows(state)
    assert allows(state, name="owner")
    outcome(view.changed(shown))
    assert allows(state)
    assert faults.pop("watch") == 1


# What becomes of entries.


def test_an_entry_that_raises_costs_no_other_and_is_told(
    told: Told, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    monkeypatch.setattr(
        specform, "read", poisoned(specform.read, lambda _, at, *__: at.key == POISON)
    )
    told.put(a=spec("x"), poison=spec("y"), z=spec("z"))
    assert held(told.state, "worker-1") == 2000
    assert len(told.said) == 1
    assert "fault in reserver (ZeroDivisionError" in told.said[0]
    assert dict(told.store.problem_counts()) == {("shop", "store"): 1}
    assert faults.pop("store") == 1


def test_an_entry_whose_edit_raises_keeps_what_it_held(
    told: Told, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    told.put(poison=spec("x", cpu="3"))
    with monkeypatch.context() as patch:
        patch.setattr(specform, "read", poisoned(specform.read, lambda *_: True))
        told.put(poison=spec("x", cpu="1"))
    assert held(told.state, "worker-1") == 3000
    told.put(poison=spec("x", cpu="2"))
    assert held(told.state, "worker-1") == 2000
    assert dict(told.store.problem_counts()) == {("shop", "store"): 0}
    assert faults.pop("store") == 1


def test_an_entry_that_cannot_be_settled_costs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed: list[Any] = []
    state = State(failed=lambda at, exc: failed.append((at.key, type(exc))))
    state.node_seen(node("worker-1", cpu="8"))
    state.ledger.advance(NOW)
    for key in ("a", POISON, "z"):
        one = reservation(key, owners=(key,), node="worker-1", cpu="1")
        state.ledger.put(replace(one, expires_at=NOW + 5))
    monkeypatch.setattr(
        state.ledger,
        "_hold",
        poisoned(state.ledger._hold, lambda entry: entry.reservation.ref.key == POISON),
    )
    state.ledger.advance(NOW + 6)
    assert held(state, "worker-1") == 1000  # Of the one that raises; it is told, and holds on.
    assert failed == [(POISON, ZeroDivisionError)]


def test_a_reservation_object_that_raises_keeps_what_it_held_and_is_told(
    monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    said: list[str] = []
    state = state_of(node("worker-1", cpu="8"), now=NOW)
    report = lambda _, problem: said.append(str(problem))  # noqa: E731
    objects = ObjectCache(state.ledger, lambda: NOW, report, lambda _: None, home="home")
    objects.put(made(revision=1))
    before = held(state, "worker-1")
    patched = poisoned(read_object, lambda *_: True)
    monkeypatch.setattr(objects_module, "read_object", patched)
    objects.put(made(revision=2, slots=3))
    assert held(state, "worker-1") == before > 0
    assert len(said) == 1
    assert faults.pop("store") >= 1


# What becomes of passes, writes and calls: each goes on with the others.


async def in_the_placer(patch: pytest.MonkeyPatch) -> None:
    world = placing.World(placing.BIG)
    raises = poisoned(placement.placing, lambda one, *_: one.ref.key == POISON)
    patch.setattr(placer_module, "placing", raises)
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
    world = telling.World()
    world.put(a=telling.spec(), poison=telling.spec(), z=telling.spec())
    _, create = await world.write(telling.MISSING, telling.answer(1))
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
    assert "what it held it holds on" in acknowledging.condition(status, "Valid")[2]


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
    world = telling.World()
    world.put(a=telling.spec())
    outcome(
        world.store.put(ConfigMapObject(Metadata("other", "shop", "uid-2"), {"b": telling.spec()}))
    )
    requests = await world.write(telling.MISSING, telling.answer(1, uid="uid-2"))
    assert [request.verb for request in requests] == ["get", "create"]


async def in_an_event(patch: pytest.MonkeyPatch) -> None:
    client = PatientClient({})
    recorder = Recorder(client, lambda: NOW)
    raises = poisoned(events_module._Event.body, lambda self, _: self.message == POISON)
    patch.setattr(events_module._Event, "body", raises)
    for message in (POISON, "other"):
        recorder.warn(Metadata("store", "shop", "uid"), "Reason", message)
    running = asyncio.create_task(recorder.run())
    while not client.requests:  # noqa: ASYNC110 - what is scripted tells nobody
        await asyncio.sleep(0)
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


async def in_an_effect(_: pytest.MonkeyPatch) -> None:
    carried: list[str] = []

    class Carrier:
        async def carry_out(self, effect: Effect) -> None:
            if effect.pod.name.name == POISON:
                raise ZeroDivisionError
            carried.append(effect.pod.name.name)

    requeue = Requeue(Carrier(), dict, lambda: 0.0)
    sending = asyncio.create_task(requeue.run())
    for name in ("a", POISON, "z"):
        requeue.send(Steer(pod(name), "worker-1"))
    while len(requeue):  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    sending.cancel()
    assert carried == ["a", "z"]


async def in_a_binding(patch: pytest.MonkeyPatch) -> None:
    async with asyncio.TaskGroup() as tasks:
        served = Served(tasks)
        served.show(pod(POISON, cpu="4"), pod("a", cpu="4"))

        async def bind(asking: Pod, *_: object) -> None:
            if asking.name.name == POISON:
                raise ZeroDivisionError

        patch.setattr(served.cluster, "bind", bind)
        for name, words in ((POISON, "fault in reserver"), ("a", "")):
            args = ExtenderBindingArgs(name, "shop", f"uid-{name}", "worker-1")
            answer = (await served.bindings.bind(args)).refusal
            assert (words in str(answer)) if words else answer is None


async def in_a_whole_pass(patch: pytest.MonkeyPatch) -> None:
    looks = asyncio.Event()
    times = 0

    async def look(*_: object) -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise ZeroDivisionError
        looks.set()

    patch.setattr(Placer, "look", look)
    placer = Placer(lambda: NOW)
    running = asyncio.create_task(placer.run(State()))
    while not looks.is_set():
        placer.touched(ref("r"))
        await asyncio.sleep(0)
    running.cancel()


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


async def in_the_feed(_: pytest.MonkeyPatch) -> None:
    class Shows:
        def short_nodes(self) -> ShortNodes:
            return ShortNodes({}, frozenset())

        def written(self, at: Ref) -> list[tuple[Ref, str]]:
            if at.key == POISON:
                raise ZeroDivisionError
            return [(at, "")]

        def show_written(self, at: Ref, *_: object) -> pb.Reservation:
            return pb.Reservation(id=at.key)

        def broken(self, _: Ref) -> list[pb.Reservation]:
            return []

    feed = ReservationFeed(cast(Catalogue, Shows()))
    for key in ("a", POISON, "z"):
        feed.touched(ref(key))
    await feed.catch_up()
    shown = map(pb.Reservation.FromString, feed.all())
    assert sorted(each.id for each in shown) == ["a", "z"]


async def in_a_move(patch: pytest.MonkeyPatch) -> None:
    def poisoned(move: Move, seen: Seen, now: float) -> Step:
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
    """Takes the conditions of requests."""

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
    """Has held all that is asked for, but cannot look at one request."""

    def __init__(self) -> None:
        pass

    def look(self, request: ProvisioningRequest) -> SeenOfRequest:
        if request.name.name == POISON:
            raise ZeroDivisionError
        return SeenOfRequest((Hold.HELD,), "2030-01-01T00:00:00Z")


async def _up_to_date() -> bool:
    return True


async def in_a_provisioning_request(_: pytest.MonkeyPatch) -> None:
    api = _Requests()
    provisioner = Provisioner(api, lambda: NOW, _Held(), _up_to_date)
    for name in (POISON, "fine"):
        provisioner.requests.put(a_request(name))
        await provisioner.step(PodName("shop", name))
    assert [each["type"] for each in api.said] == ["Accepted", "Provisioned"]


async def in_an_http_call(_: pytest.MonkeyPatch) -> None:
    def at_once(request: Request) -> Answer:
        if request.path == f"/{POISON}":
            raise ZeroDivisionError
        return text("ok")

    async def later(request: Request) -> Answer:
        return at_once(request)

    async def statuses(handler: Handler) -> list[int]:
        paths = dict.fromkeys((f"/{POISON}", "/filter"), ("POST", handler))
        answers = [answer(paths, Request("POST", path, {})) for path in paths]
        return [(a if isinstance(a, Answer) else await a).status for a in answers]

    assert await statuses(later) == [500, 200]
    assert await statuses(at_once) == [500, 200]


async def in_a_grpc_call(_: pytest.MonkeyPatch) -> None:
    refused = calls_module._fault(Call("Capacity/Get", "get", "reservations"), ZeroDivisionError())
    assert refused.code is grpc.StatusCode.INTERNAL
    with pytest.raises(MemoryError):
        calls_module._fault(Call("Capacity/Get", "get", "reservations"), MemoryError())


SCENARIOS: dict[Component, tuple[Callable[[pytest.MonkeyPatch], Awaitable[None]], ...]] = {
    "bind": (in_a_binding,),
    "buffer": (in_a_buffer,),
    "call": (in_a_grpc_call,),
    "cleaner": (in_the_cleaner,),
    "companion": (in_a_companion,),
    "effect": (in_an_effect,),
    "event": (in_an_event,),
    "feed": (in_the_feed,),
    "history": (in_the_history,),
    "http": (in_an_http_call,),
    "move": (in_a_move,),
    "pass": (in_a_whole_pass,),
    "placer": (in_the_placer,),
    "provisioning": (in_a_provisioning_request,),
    "quota": (in_a_quota, in_the_status_of_a_quota),
    "status": (in_a_status, in_the_status_of_an_object),
    "waker": (in_the_waker,),
}
SHOWN_ABOVE: set[Component] = {"ledger", "store", "watch"}


def test_each_place_that_judges_is_shown() -> None:
    assert SCENARIOS.keys() | SHOWN_ABOVE == set(get_args(Component))


@pytest.mark.parametrize(
    ("component", "scenario"),
    [(component, each) for component, several in SCENARIOS.items() for each in several],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_what_raises_costs_no_other(
    component: Component,
    scenario: Callable[[pytest.MonkeyPatch], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    faults: Faults,
) -> None:
    async with asyncio.timeout(20):
        await scenario(monkeypatch)
    assert faults.pop(component) >= 1
