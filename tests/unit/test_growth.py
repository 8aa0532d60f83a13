"""Objects that tenants write and delete leave no memory behind."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from cachetools import Cache

from reserver.base.clock import SteadyClock
from reserver.base.fairness import FairMemory
from reserver.base.pacer import Pacer, outcome
from reserver.cluster import headroom
from reserver.errors import ApiError
from reserver.extender.handlers import Extender
from reserver.extender.protocol import ExtenderBindingArgs
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.k8s.work_queue import WorkQueue
from reserver.process.assembly import Assembly
from reserver.process.hold_metrics import MOST_NAMESPACES
from reserver.reservations import admission
from reserver.reservations.accounts import MOST_OWNERS, MOST_WEEKS, Accounts
from reserver.scheduling.state import State
from reserver.settings.serve import Settings
from reserver.stores.archive import SHARD_BYTES, SHARDS, Archive
from tests.builders import NOW
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.fakes import always, refused

pytestmark = pytest.mark.long

NODES = [f"worker-{number}" for number in range(4)]
PODS, NODE_PATH = "/api/v1/pods", "/api/v1/nodes"
STORES = "/api/v1/namespaces/reserver-system/configmaps"
OBJECTS = "/apis/reserver.io/v1alpha1/reservations"
QUOTAS = "/apis/reserver.io/v1alpha1/reservationquotas"

SPARE_TURNS = 10
SPARE_ENTRIES = 10
BOUNDED = {
    "_turns": SPARE_TURNS + 4 * 10,
    "_wait_queue": SPARE_ENTRIES + 2 * 10 + 1,
    "_changed": headroom._MOST_CHANGES,
    "_core_seconds": MOST_NAMESPACES + 1,
    "_refused_at": MOST_NAMESPACES + 2 * 10,
}
"""The bounds of collections that do not shrink at once, by name."""


def sizes(thing: object) -> dict[str, int]:
    """Return how many elements each container has that can be reached from a thing, by its path.

    Caches and the archive, which are bounded, are passed over.
    """
    found: dict[str, int] = {}
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [("", thing)]
    while todo:
        path, one = todo.pop()
        if id(one) in seen or isinstance(one, str | bytes | type) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            found[path] = found.get(path, 0) + one.size
            continue
        if isinstance(one, asyncio.Queue):
            found[path] = found.get(path, 0) + one.qsize()
            continue
        if isinstance(one, Archive | Accounts | Cache | FairMemory):
            check_bound(one, path)
            continue
        bound = BOUNDED.get(path.rpartition(".")[2])
        if bound is not None and isinstance(one, list | dict):
            assert len(one) <= bound, path
            continue
        todo += ((f"{path}.{name}", value) for name, value in attributes(one))
        if isinstance(one, Mapping):
            found[path] = found.get(path, 0) + len(one)
            todo += ((f"{path}[]", value) for value in tuple(one.values()))
        elif isinstance(one, list | tuple | set | frozenset):
            found[path] = found.get(path, 0) + len(one)
            todo += ((f"{path}[]", value) for value in one)
    return found


def check_bound(
    one: Archive | Accounts | Cache[Any, Any] | FairMemory[Any, Any], path: str
) -> None:
    if isinstance(one, Archive):
        assert max(map(one.size, range(SHARDS))) <= SHARD_BYTES, path
    elif isinstance(one, Accounts):
        assert len(list(one)) <= MOST_WEEKS * (MOST_OWNERS + 1) * 2, path
    elif isinstance(one, FairMemory):
        assert len(one) == sum(map(len, one._of.values())) <= one._most, path
    else:
        assert one.maxsize < float("inf"), path


def attributes(thing: object) -> Iterator[tuple[str, object]]:
    if not type(thing).__module__.startswith("reserver"):
        return
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(thing, name):
                yield name, getattr(thing, name)


class Willing(ApiClient):
    """An API server that does what it is asked, unless a test says how it fails."""

    def __init__(self) -> None:
        self.revision = 1000
        self.failure: Exception | None = None

    async def _send(self, method: str, path: str, **_: object) -> bytes:
        if method == "GET":
            raise ApiError(404, "NotFound", f"{path} not found")
        if self.failure is not None:
            raise self.failure
        self.revision += 1
        return json.dumps({"metadata": {"resourceVersion": str(self.revision)}}).encode()


class Whole:
    """All that watches and decides, put together as `serve` does, on raw objects."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.now = NOW
        self.client = Willing()
        clock = SteadyClock(lambda: self.now, lambda: self.now)
        settings = Settings(crd=True, default_quota="none")
        self.assembly = Assembly(settings, self.client, clock, tasks)
        self.state: State = self.assembly.state
        self.time = ManualTime()
        assembly = self.assembly
        queues: tuple[WorkQueue[Any], ...] = (
            assembly.cleaner.queue,
            assembly.placer.queue,
            assembly.quota_writer.unwritten,
            assembly.archivist.queue,
            *(store.statuses.queue for store in assembly.stores),
        )
        for queue in queues:
            queue._time = self.time
        self.extender = Extender(
            self.state,
            self.assembly.pod_writes,
            self.assembly.requeue,
            clock,
            Seeing(),
            tasks,
            on_event=self.assembly.recorder.record,
        )
        self.views = {reflector.path: reflector.view for reflector in self.assembly.reflectors}
        outcome(self.state.ledger.open())
        self.state.is_complete = True
        for name in NODES:
            allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
            self.show(NODE_PATH, name, "", status={"allocatable": allocatable})

    def show(self, path: str, name: str, namespace: str, **fields: Any) -> bytes:
        """Let a watch show an object; return it."""
        self.client.revision += 1
        metadata = fields.pop("metadata", {}) | {
            "name": name,
            "uid": fields.pop("uid", f"uid-{namespace}-{name}"),
            "resourceVersion": str(self.client.revision),
        }
        if namespace:
            metadata["namespace"] = namespace
        raw = json.dumps({"metadata": metadata, **fields}).encode()
        outcome(self.views[path].changed(msgspec.Raw(raw)))
        return raw

    def end(self, path: str, raw: bytes) -> None:
        outcome(self.views[path].deleted(msgspec.Raw(raw)))

    async def work(self) -> None:
        """Let all writers do what there is to do."""
        self.time.now += 60.0
        assembly = self.assembly
        await assembly.quota_writer.settle(self.state.ledger, Pacer())
        quota_writer = assembly.quota_writer
        await worked_off(quota_writer.run(assembly.quotas), quota_writer.unwritten)
        await assembly.placer.look(self.state, Pacer())
        await worked_off(assembly.cleaner.run(assembly.stores, always), assembly.cleaner.queue)
        for store in assembly.stores:
            await store.statuses.write(self.state)
        await asyncio.sleep(0.001)
        await worked_off(assembly.recorder.run(), assembly.recorder.queue)
        assembly.waker.queue.take_all()


class Seeing:
    def obstacles(self) -> tuple[str, ...]:
        return ()

    async def caught_up(self) -> None:
        pass

    async def agrees(self) -> bool:
        return True


def spec(number: int, **more: object) -> dict[str, object]:
    return {
        "owners": [
            {"pod": {"name": f"owner-{number}"}},
            {"selector": {"matchLabels": {f"app-{number}": f"a{number}"}}},
        ],
        "resources": {"cpu": "1"},
        "expiresAt": f"2031-01-01T00:{number % 60:02}:{number // 60 % 60:02}Z",
        **more,
    }


async def reservations_come_and_go(whole: Whole, number: int) -> None:
    for path, placed in ((OBJECTS, {"node": NODES[number % 4]}), (OBJECTS, {}), (OBJECTS, {})):
        raw = whole.show(path, f"r{number}", "team", spec=spec(number, **placed))
        await whole.work()
        whole.end(path, raw)
    data = {f"k{number}": json.dumps(spec(number, node=NODES[0])), "broken": f"{{}}{number}"}
    raw = whole.show(STORES, "store", "reserver-system", data=data)
    await whole.work()
    raw = whole.show(STORES, "store", "reserver-system", data={})
    await whole.work()
    whole.end(STORES, raw)


async def one_entry_is_edited_again_and_again(whole: Whole, number: int) -> None:
    edited = spec(number, slots=1 + number % 3, node=NODES[number % 4])
    whole.show(OBJECTS, "same", "team", spec=edited, uid="same")
    data = {"same": json.dumps(edited)}
    whole.show(STORES, "same", "reserver-system", data=data, uid="same-store")
    await whole.work()


def pod_of(number: int, node: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "a", "resources": {"requests": {"cpu": "6"}}}
    metadata = {"labels": {"app": f"a{number}"}, **more}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [container]}}


async def pods_wait_and_go(whole: Whole, number: int) -> None:
    held = whole.show(OBJECTS, f"h{number}", "team", spec=spec(0, node=NODES[0]))
    raw = whole.show(PODS, f"p{number}", "shop", **pod_of(number))
    pod = decode(PodObject, raw).value()
    names = [*NODES, *(f"gone-{number}-{more}" for more in range(5))]
    whole.extender.carry_out(whole.extender.filter(pod, names))
    await whole.extender.preempt(pod, dict.fromkeys(NODES, (f"victim-{number}",)))
    whole.end(PODS, raw)
    whole.end(OBJECTS, held)
    await whole.work()


async def pods_are_bound_and_go(whole: Whole, number: int) -> None:
    written = spec(number, node=NODES[number % 4])
    held = whole.show(OBJECTS, f"h{number}", "team", spec=written)
    name = f"owner-{number}"
    whole.show(PODS, name, "team", **pod_of(number))
    args = ExtenderBindingArgs(name, "team", f"uid-team-{name}", NODES[number % 4])
    assert (await whole.extender.bindings.bind(args)).refusal is None
    claimed = {"annotations": {"reserver.io/claims": json.dumps([f"x{number}", "y"])}}
    raw = whole.show(PODS, name, "team", **pod_of(number, NODES[number % 4], **claimed))
    await whole.work()
    whole.end(PODS, raw)
    whole.end(OBJECTS, held)
    await whole.work()


async def bindings_fail(whole: Whole, number: int) -> None:
    raw = whole.show(PODS, f"p{number}", "shop", **pod_of(number))
    args = ExtenderBindingArgs(f"p{number}", "shop", f"uid-shop-p{number}", f"no-node-{number}")
    whole.client.failure = refused(404)
    assert (await whole.extender.bindings.bind(args)).refusal is not None
    whole.client.failure = None
    whole.end(PODS, raw)
    whole.now += 10.0
    await whole.work()


async def writes_are_refused(whole: Whole, number: int) -> None:
    whole.client.failure = refused(403)
    raw = whole.show(OBJECTS, f"r{number}", "team", spec=spec(number))
    entry = json.dumps(spec(number))
    store = whole.show(STORES, f"s{number}", "reserver-system", data={f"k{number}": entry})
    await whole.work()
    await whole.work()
    whole.end(OBJECTS, raw)
    whole.end(STORES, store)
    whole.client.failure = None
    whole.now += 60.0
    await whole.work()
    await whole.work()


async def nodes_come_and_go(whole: Whole, number: int) -> None:
    name = f"spot-{number}"
    node = whole.show(NODE_PATH, name, "", status={"allocatable": {"cpu": "4", "pods": "110"}})
    held = whole.show(OBJECTS, f"r{number}", "team", spec=spec(number, node=name))
    await whole.work()
    whole.end(NODE_PATH, node)
    whole.end(OBJECTS, held)
    await whole.work()


async def quotas_come_and_go(whole: Whole, number: int) -> None:
    namespace = f"team-{number}"
    quota = {"hard": {"reservations": 1}}
    limit = whole.show(QUOTAS, "quota", namespace, spec=quota, metadata={"generation": 1})
    held = [whole.show(OBJECTS, f"r{n}", namespace, spec=spec(n)) for n in range(3)]
    await whole.work()
    assert whole.state.ledger.quotas.used(namespace)["reservations"] == 1
    for raw in held:
        whole.end(OBJECTS, raw)
    whole.end(QUOTAS, limit)
    await whole.work()


@pytest.mark.parametrize(
    "churn",
    [
        reservations_come_and_go,
        one_entry_is_edited_again_and_again,
        pods_wait_and_go,
        pods_are_bound_and_go,
        bindings_fail,
        writes_are_refused,
        nodes_come_and_go,
        quotas_come_and_go,
    ],
)
async def test_every_container_is_back_at_its_size(
    churn: Callable[[Whole, int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_SPARE_ENTRIES", SPARE_ENTRIES)
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        sending = tasks.create_task(whole.assembly.requeue.run())
        for number in range(20):
            await churn(whole, number)
        before = sizes((whole.assembly, whole.extender))
        for number in range(20, 120):
            await churn(whole, number)
        after = sizes((whole.assembly, whole.extender))
        sending.cancel()
    assert {path: size for path, size in after.items() if size > before.get(path, 0)} == {}
