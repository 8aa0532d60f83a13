import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.kube.loops.events import Recorder
from reserver.kube.stores.configmap import status
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.configmap.companion import REREAD_EVERY_S
from reserver.kube.stores.configmap.status import CompanionStatuses
from reserver.kube.stores.status import Room
from reserver.pacer import Pacer, outcome
from reserver.reservations.reservation import Ref, Written
from reserver.scheduling.state import State
from reserver.wire.k8s.objects import ConfigMapObject, Metadata
from reserver.wire.status import companion
from reserver.wire.status.companion import SEEN
from tests.builders import NOW, node, pod
from tests.unit.kube.fakes import NO_ANSWER, PatientClient, Request, ScriptedClient, refused

W1 = node("worker-1", cpu="64")
TAKER = pod("taker", node="worker-1", cpu="64")
MISSING = refused(404)
COLLECTION = "/api/v1/namespaces/shop/configmaps"
PATH = f"{COLLECTION}/store-status"


def spec(**changes: object) -> str:
    fields = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "2"}, "node": "worker-1"}
    return json.dumps(fields | {"ttl": 0} | changes)


def answer(
    version: int, data: Mapping[str, str] | None = None, uid: str = "uid-1", seen: str = ""
) -> Any:
    """Return a companion as the API server has it."""
    metadata: dict[str, Any] = {"resourceVersion": str(version), "ownerReferences": [{"uid": uid}]}
    metadata["annotations"] = {SEEN: seen}
    return {"metadata": metadata, "data": data or {}}


class World:
    """A store, the state behind it, and a writer in front of an API server with a script."""

    def __init__(self, *script: Any, things: tuple[Node | Pod, ...] = (W1,)) -> None:
        self.now = NOW
        self.warned: list[tuple[str, str]] = []
        self.client = ScriptedClient(*script)
        self.restart()
        for thing in things:
            if isinstance(thing, Node):
                self.state.node_seen(thing)
            else:
                self.state.pod_seen(thing)

    def restart(self) -> None:
        self.state = State(settled=self._touched)
        self.store = ConfigMapCache(
            self.state.ledger,
            lambda: self.now,
            lambda *_: None,
            self._touched,
        )
        room = Room(self._touched)
        self.writer = CompanionStatuses(self.client, self.store, self._warn, room)

    def _touched(self, ref: Ref) -> None:
        self.writer.touched(ref)

    def _warn(self, _: Metadata, reason: str, message: str) -> None:
        self.warned.append((reason, message))

    def put(self, uid: str = "uid-1", version: str = "", **data: str) -> None:
        self._put(Metadata("store", "shop", uid, version), data, listed=False)

    def list_(self, version: str, **data: str) -> None:
        self._put(Metadata("store", "shop", "uid-1", version), data, listed=True)

    def _put(self, metadata: Metadata, data: Mapping[str, str], *, listed: bool) -> None:
        renamed = {key.replace("_", "-"): text for key, text in data.items()}
        outcome(self.store.put(ConfigMapObject(metadata=metadata, data=renamed), listed=listed))

    async def write(self, *script: Any, later: float = 0.0) -> list[Request]:
        """Let the writer work with these answers, and return what it asked."""
        self.client.script += script
        self.client.requests.clear()
        self.now += later
        await self.writer.write(self.state)
        assert not self.client.script
        return list(self.client.requests)


def said(request: Request, key: str) -> Any:
    return json.loads(request.body["data"][key])


async def written(**data: str) -> tuple[World, dict[str, str]]:
    """Return a world whose companion exists, and what it says."""
    world = World()
    world.put(**data)
    _, create = await world.write(MISSING, answer(1))
    return world, create.body["data"]


async def test_a_companion_that_is_missing_is_made() -> None:
    world = World()
    world.put(web=spec(), broken="{")
    get, create = await world.write(MISSING, answer(1))
    assert (get.verb, get.path) == ("get", PATH)
    assert (create.verb, create.path) == ("create", COLLECTION)
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert create.body["metadata"]["labels"] == {companion.LABEL: "store"}
    digest = next(iter(world.state.ledger))[0].digest
    expected = {"phase": "Active", "backed": True, "digest": digest, "message": ""}
    assert said(create, "web") == expected
    assert said(create, "broken")["phase"] == "Invalid"
    assert world.writer.writes == 1


async def test_nothing_is_made_for_a_store_that_says_nothing() -> None:
    world = World()
    world.put()
    assert len(await world.write(MISSING)) == 1
    assert await world.write() == []


async def test_nothing_is_written_of_a_store_that_is_only_partly_taken() -> None:
    world, _ = await written(web=spec())
    data = {key: spec() for key in ("web", "api", "db")}
    new = ConfigMapObject(metadata=Metadata("store", "shop", "uid-1", "2"), data=data)
    steps = world.store.put(new)
    while "db" not in world.store.keys(("shop", "store")):
        next(steps)
        assert await world.write() == []
    outcome(steps)
    (patch,) = await world.write(answer(2))
    assert set(patch.body["data"]) == {"api", "db"}


async def test_what_went_while_reserver_was_away_is_said_no_more() -> None:
    world = World()
    world.put()
    _, patch = await world.write(answer(1, {"gone": "{}"}), answer(2))
    assert patch.body["data"] == {"gone": None}


async def test_nothing_is_asked_while_nothing_changes() -> None:
    world, _ = await written(web=spec())
    assert await world.write() == []
    world.put(web=spec() + " ")
    assert await world.write() == []


async def test_what_comes_changes_and_goes_is_written_for_the_version_that_was_seen() -> None:
    world, _ = await written(web=spec(), api=spec(), same=spec())
    world.put(web=spec(resources={"cpu": "1"}), same=spec(), new=spec(node="ghost"))
    (patch,) = await world.write(answer(2))
    assert (patch.verb, patch.path) == ("patch", PATH)
    assert patch.body["metadata"] == {"resourceVersion": "1"}
    assert patch.body["data"].keys() == {"web", "api", "new"}
    assert patch.body["data"]["api"] is None
    assert "'ghost' does not exist" in said(patch, "new")["message"]
    world.put(same=spec())
    (patch,) = await world.write(answer(3))
    assert patch.body == {
        "metadata": {"resourceVersion": "2"},
        "data": {"web": None, "new": None},
    }


async def test_after_a_restart_only_what_differs_is_written() -> None:
    world, data = await written(web=spec(), api=spec())
    world.restart()
    world.state.node_seen(W1)
    world.put(web=spec(), api=spec(resources={"cpu": "1"}))
    get, patch = await world.write(answer(7, data | {"gone": "{}"}), answer(8))
    assert get.verb == "get"
    assert patch.body["metadata"] == {"resourceVersion": "7"}
    assert patch.body["data"].keys() == {"api", "gone"}
    assert patch.body["data"]["gone"] is None


# Two reservers, people, and Kubernetes itself.


@pytest.mark.parametrize("status", [404, 409])
async def test_a_write_that_somebody_forestalled_is_made_anew_for_what_is_there(
    status: int,
) -> None:
    world, data = await written(web=spec())
    world.put(web=spec(), api=spec(), new=spec())
    with capture_logs() as logs:
        assert len(await world.write(refused(status))) == 1
        _, again = await world.write(answer(5, data | {"api": "{}"}), answer(6))
    assert again.body["metadata"] == {"resourceVersion": "5"}
    assert again.body["data"].keys() == {"api", "new"}
    assert logs == []


async def test_a_companion_that_somebody_made_first_is_taken_as_it_is() -> None:
    _, data = await written(web=spec())
    other = World()
    other.put(web=spec())
    assert len(await other.write(MISSING, refused(409))) == 2
    assert len(await other.write(answer(1, data))) == 1
    assert other.writer.writes == 0


async def test_a_companion_that_was_edited_or_deleted_is_mended_within_a_minute() -> None:
    world, data = await written(web=spec())
    assert len(await world.write(answer(1, data), later=REREAD_EVERY_S)) == 1
    _, patch = await world.write(answer(9, {"web": "Active"}), answer(10), later=REREAD_EVERY_S)
    assert patch.body["data"] == data
    _, create = await world.write(MISSING, answer(11), later=REREAD_EVERY_S)
    assert create.body["data"] == data


async def test_a_configmap_that_is_no_companion_of_the_store_is_left_alone() -> None:
    world = World()
    world.put(web=spec())
    with capture_logs() as logs:
        (get,) = await world.write(answer(1, uid="uid-other"))
        await world.write(answer(1, uid="uid-other"), later=30)
    assert get.verb == "get"
    assert [log["event"] for log in logs] == ["status cannot be written, retrying"]
    assert "belongs to something else" in logs[0]["why"]


async def test_what_is_no_companion_is_forgotten_with_its_store() -> None:
    world = World()
    world.put(web=spec())
    await world.write(answer(1, uid="uid-other"))
    outcome(world.store.drop(("shop", "store")))
    await world.write(answer(1, uid="uid-other"), later=30)
    assert await world.write(later=30) == []


async def test_a_store_made_anew_gets_a_companion_of_its_own() -> None:
    world, data = await written(web=spec())
    world.put(uid="uid-2", web=spec(), api=spec())
    await world.write(answer(1, data))  # Of the former store: Kubernetes is about to delete it.
    _, create = await world.write(MISSING, answer(2), later=30)
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "uid-2"
    assert create.body["data"].keys() == {"web", "api"}


async def test_the_companion_of_a_configmap_that_is_no_store_any_more_says_nothing() -> None:
    world, _ = await written(web=spec())
    outcome(world.store.drop(("shop", "store")))
    (patch,) = await world.write(answer(2))
    assert patch.body["data"] == {"web": None}
    assert await world.write(later=REREAD_EVERY_S) == []


async def test_the_companion_of_a_store_that_is_gone_is_forgotten() -> None:
    world, _ = await written(web=spec())
    outcome(world.store.drop(("shop", "store")))
    assert len(await world.write(MISSING)) == 1
    assert len(await world.write(MISSING)) == 1
    assert await world.write(later=REREAD_EVERY_S) == []


# Faults.


@pytest.mark.parametrize("fault", [NO_ANSWER, refused(403), refused(500), b"<html>"])
async def test_a_fault_is_logged_once_and_tried_again_later_and_later(fault: Any) -> None:
    world = World()
    world.put(web=spec())
    with capture_logs() as logs:
        await world.write(fault)
        assert await world.write() == []
        assert await world.write(later=0.4) == []  # Up to half of a pause is left off by chance.
        await world.write(fault, later=0.6)
        assert await world.write(later=0.9) == []
        await world.write(MISSING, answer(1), later=1.1)
    assert len(logs) == 1
    assert world.writer.writes == 1


async def test_a_right_that_is_missing_is_named_with_the_manifest_that_grants_it() -> None:
    world = World()
    world.put(web=spec())
    with capture_logs() as logs:
        await world.write(MISSING, refused(403))
    assert "rbac-reserver.yaml" in logs[0]["why"]


async def test_a_fault_of_one_companion_is_none_of_another() -> None:
    world = World()
    world.put(web=spec())
    metadata = Metadata(name="other", namespace="shop", uid="uid-2")
    outcome(world.store.put(ConfigMapObject(metadata=metadata, data={"api": spec()})))
    world.client = client = _ByName("store-status")
    world.writer.client = client
    await world.writer.write(world.state)
    assert client.made == ["other-status"]


class _ByName(ScriptedClient):
    """An API server without companions that fails for one of them."""

    def __init__(self, fails: str) -> None:
        super().__init__()
        self.fails = fails
        self.made: list[str] = []

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        assert params is None
        raise NO_ANSWER if path.endswith(self.fails) else MISSING

    async def create(self, path: str, body: Any) -> bytes:
        assert path == COLLECTION
        self.made.append(body["metadata"]["name"])
        return json.dumps(answer(1)).encode()


TOO_LARGE = (
    refused(413),
    type(NO_ANSWER)(422, "Invalid", "data: Too long: may not be more than 1048576 bytes"),
    type(NO_ANSWER)(500, "", "etcdserver: request is too large"),
    type(NO_ANSWER)(500, "", "trying to send message larger than max (2639209 vs. 2097152)"),
)


@pytest.mark.parametrize("fault", TOO_LARGE, ids=str)
async def test_a_companion_that_is_too_large_is_made_smaller(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion, "MOST_BYTES", 500)
    world = World()
    world.put(a=spec(node="ghost"), b=spec(node="ghost"), c=spec(node="ghost"))
    with capture_logs() as logs:
        _, first = await world.write(MISSING, fault)
        _, second = await world.write(MISSING, fault, later=30)
        _, third = await world.write(MISSING, fault, later=30)
        _, fourth = await world.write(MISSING, answer(1), later=30)
    assert "message" in said(first, "a")
    assert second.body["data"].keys() == {"a", "b", "c"}
    assert "message" not in said(second, "a")
    assert len(third.body["data"]) == 3
    assert len(fourth.body["data"]) == 3
    faults = [log["event"] for log in logs if log["event"] != "holds not backed"]
    assert faults == ["status cannot be written, retrying"]


async def test_keys_without_room_are_logged_and_said_once_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(companion, "MOST_BYTES", 150)
    world = World()
    world.put(a=spec(), b=spec(), c=spec())
    with capture_logs() as logs:
        _, create = await world.write(MISSING, answer(1))
    there = set(create.body["data"])
    (left_out,) = {"a", "b", "c"} - there
    assert [log["keys"] for log in logs] == [1]
    world.put(**{left_out: spec()})
    (patch,) = await world.write(answer(2))
    assert patch.body["data"].keys() == {"a", "b", "c"}
    assert said(patch, left_out)["phase"] == "Active"


async def test_messages_that_there_is_no_room_for_are_in_the_events_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(companion, "MOST_BYTES", 200)
    world = World()
    world.put(a=spec(node="ghost"))
    _, create = await world.write(MISSING, answer(1))
    assert "message" in said(create, "a")
    world.put(a=spec(node="ghost"), b=spec(node="ghost"))
    (patch,) = await world.write(answer(2))
    assert ["message" in said(patch, key) for key in ("a", "b")] == [False, False]
    ends = "node 'ghost' does not exist; the hold takes effect once it does"
    assert world.warned == [("NodeNotFound", f"{key}: {ends}") for key in ("a", "b")]


# Room that goes and comes.


async def test_a_hold_whose_room_is_taken_is_told_once_until_it_has_been_free_again() -> None:
    world, _ = await written(web=spec(), other=spec(node="worker-2"))
    for number in range(2):
        world.warned.clear()
        world.state.pod_seen(TAKER)
        (taken,) = await world.write(answer(2))
        assert said(taken, "web")["backed"] is False
        ((reason, message),) = world.warned
        assert reason == "NotBacked"
        assert message.startswith("web: worker-1 has too little cpu: pods and holds take more")
        assert await world.write() == [], number
        world.state.pod_gone(TAKER.name)
        (free,) = await world.write(answer(3))
        assert said(free, "web")["backed"] is True
    assert len(world.warned) == 1


async def test_each_item_of_a_list_is_told_by_its_name() -> None:
    world = World(things=(W1, TAKER))
    item = {"pod": "a", "namespace": "shop", "cpu": 1, "mem": 0, "expire": int(NOW) + 9}
    world.put(worker_1=json.dumps([item, item | {"pod": "b"}]))
    await world.write(MISSING, answer(1))
    assert [message.partition(":")[0] for _, message in world.warned] == [
        "worker-1[shop/a]",
        "worker-1[shop/b]",
    ]


async def test_what_was_told_before_a_restart_is_not_told_again() -> None:
    world, _ = await written(web=spec())
    world.state.pod_seen(TAKER)
    (patch,) = await world.write(answer(2))
    assert len(world.warned) == 1
    world.restart()
    world.state.node_seen(W1)
    world.state.pod_seen(TAKER)
    world.put(web=spec())
    assert len(await world.write(answer(2, patch.body["data"]))) == 1
    assert len(world.warned) == 1


async def test_of_two_that_see_a_change_only_the_one_that_writes_it_tells() -> None:
    world, data = await written(web=spec())
    other = World()
    other.put(web=spec())
    await other.write(answer(1, data))
    for each in (world, other):
        each.state.pod_seen(TAKER)
    (patch,) = await world.write(answer(2))
    await other.write(refused(409))
    assert len(await other.write(answer(2, patch.body["data"]))) == 1
    assert (len(world.warned), len(other.warned)) == (1, 0)


async def test_nodes_that_come_and_go_are_noticed() -> None:
    world, _ = await written(web=spec())
    world.state.node_gone("worker-1")
    (patch,) = await world.write(answer(2))
    assert "does not exist" in said(patch, "web")["message"]
    world.state.node_seen(W1)
    (patch,) = await world.write(answer(3))
    assert said(patch, "web")["backed"] is True


async def test_a_device_that_no_node_had_is_noticed() -> None:
    gpu = {"nvidia.com/gpu": "1"}
    world, data = await written(web=spec(resources=gpu))
    assert "too little nvidia.com/gpu" in data["web"]
    world.state.node_seen(node("worker-1", cpu="4", gpu="8"))
    (patch,) = await world.write(answer(2))
    assert said(patch, "web")["backed"] is True


async def test_a_flood_of_one_reason_does_not_drown_events_of_another() -> None:
    client = PatientClient(*[{}] * 26)
    recorder = Recorder(client, lambda: NOW)
    store = Metadata(name="store", namespace="shop", uid="uid-1")
    for number in range(100):
        recorder.warn(store, "NotBacked", f"web-{number}: no room")
    recorder.warn(store, "InvalidReservation", "api: broken")
    task = asyncio.create_task(recorder.run())
    while len(client.requests) < 26:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0)
    task.cancel()
    events = [(request.body["reason"], request.body["message"]) for request in client.requests]
    assert events[0] == ("NotBacked", "web-0: no room")
    assert events[24] == ("NotBacked", "web-24: no room (more are in reserver's log)")
    assert events[25] == ("InvalidReservation", "api: broken")


# Many at once.


async def test_ten_thousand_entries_are_a_handful_of_writes_and_keep_nobody_waiting() -> None:
    workers = [f"worker-{number}" for number in range(100)]
    world = World(things=tuple(node(worker, cpu="64", pods="200") for worker in workers))
    entries = (
        (f"r{n}", spec(resources={"cpu": "1m"}, node=workers[n % 100])) for n in range(10_000)
    )
    world.put(**dict(entries))
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(other_work())
    requests = await world.write(MISSING, answer(1), answer(2))
    task.cancel()
    assert [request.verb for request in requests] == ["get", "create", "patch"]
    assert turns >= 100
    for worker in workers:
        world.state.pod_seen(pod(f"taker-of-{worker}", node=worker, cpu="64"))
    (patch,) = await world.write(answer(3))  # One, because there is no room for messages.
    assert patch.body["metadata"]["resourceVersion"] == "2"
    assert len(patch.body["data"]) == 10_000
    assert len(world.warned) == 10_000


async def test_a_hold_that_comes_during_a_pass_is_not_said_to_be_backed_before_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status, "Pacer", partial(Pacer, 0.0))  # However fast the machine is.
    world = World(things=(node("worker-1", cpu="64", pods="20000"),))
    many = {f"r{number}": spec(resources={"cpu": "1m"}) for number in range(100)}
    world.put(**many)

    async def take_all() -> None:
        while not world.client.requests:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)
        world.state.pod_seen(pod("taker", node="worker-1", cpu="64"))
        world.put(**many, late=spec())

    task = asyncio.create_task(take_all())
    _, create = await world.write(MISSING, answer(1))
    await task
    backed = {key for key, text in create.body["data"].items() if json.loads(text)["backed"]}
    assert "late" not in backed
    (patch,) = await world.write(answer(2))
    assert patch.body["data"].keys() == backed | {"late"}


async def test_it_writes_until_it_is_stopped(pauses: list[float]) -> None:
    world = World()
    client = PatientClient(MISSING, answer(1), answer(2))
    world.writer.client = client
    world.put(web=spec())
    task = asyncio.create_task(world.writer.run(world.state))
    while world.writer.writes < 1:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0)
    world.put(web=spec(), api=spec())
    while world.writer.writes < 2:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0)
    task.cancel()
    assert 0.5 in pauses


def bound(name: str, revision: int) -> Pod:
    return replace(pod(name, node="worker-1", cpu="1"), revision=revision)


async def test_claims_are_recorded_and_outlive_a_restart() -> None:
    owners = [{"pod": {"name": name}} for name in "abc"]
    world, data = await written(web=spec(slots=3, owners=owners))
    (web,) = world.state.ledger.seats(pod("a"))
    for name, revision in (("a", 7), ("b", 9)):
        world.state.pod_seen(replace(bound(name, revision), claims=frozenset({web.identity})))
    (patch,) = await world.write(answer(2))
    assert said(patch, "web")["claims"] == {"uid-a": 7, "uid-b": 9}
    data |= patch.body["data"]
    world.restart()
    world.state.node_seen(W1)
    world.put(web=spec(slots=3, owners=owners), version="6")
    assert world.state.ledger.held_on("worker-1")["cpu"] == 6000
    await world.write(answer(2, data), answer(3))
    assert world.state.ledger.held_on("worker-1")["cpu"] == 2000


async def test_claims_are_recalled_from_a_store_that_was_written_after_them() -> None:
    web = spec(slots=2, resources={"cpu": "1"}, owners=[{"pod": {"name": n}} for n in "ab"])
    world = World()
    world.put(web=web, version="5")
    _, create = await world.write(MISSING, answer(1))
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.pod_seen(replace(bound("a", 7), claims=frozenset({seat.identity})))
    (recorded,) = await world.write(answer(2))
    assert recorded.body["metadata"]["annotations"] == {SEEN: "5"}
    world.put(web=web, version="19")  # Only its metadata.
    (noted,) = await world.write(answer(3))
    assert noted.body == {"metadata": {"resourceVersion": "2", "annotations": {SEEN: "19"}}} | {
        "data": {}
    }
    world.put(web=web, other=spec(node="worker-2"), version="20")
    (last,) = await world.write(answer(4))
    assert last.body["metadata"]["annotations"] == {SEEN: "20"}
    assert await world.write() == []
    data = create.body["data"] | recorded.body["data"] | last.body["data"]
    world.restart()
    world.state.node_seen(W1)
    world.list_("20", web=web, other=spec(node="worker-2"))
    await world.write(answer(4, data, seen="20"))
    assert world.state.ledger.held_on("worker-1")["cpu"] == 1000


@pytest.mark.parametrize("first", [0, 20], ids=["written before", "written anew since"])
async def test_claims_that_may_be_of_what_stood_there_before_wait_for_the_history(
    first: int,
) -> None:
    web = spec(slots=2, resources={"cpu": "1"}, owners=[{"pod": {"name": n}} for n in "ab"])
    world, data = await written(web=web)
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.pod_seen(replace(bound("a", 7), claims=frozenset({seat.identity})))
    (recorded,) = await world.write(answer(2))
    world.restart()
    world.state.node_seen(W1)
    world.list_("21", web=web)
    await world.write(answer(2, data | recorded.body["data"], seen="9"))
    ledger = world.state.ledger
    assert (ledger.held_on("worker-1")["cpu"], ledger.past.unsure_since()) == (2000, 9)
    assert await world.write() == []  # Neither forgotten, nor said to be of what stands there.
    ledger.past.narrow(seat.ref, seat.identity, Written(first, first or 8))
    assert (ledger.held_on("worker-1")["cpu"], ledger.past.unsure_since()) == (
        2000 if first else 1000,
        None,
    )
    (last,) = await world.write(answer(3))
    if first:
        assert "claims" not in said(last, "web")
    else:
        assert last.body["metadata"]["annotations"] == {SEEN: "21"}


async def test_claims_of_which_no_history_tells_are_given_up() -> None:
    web = spec(slots=2, resources={"cpu": "1"}, owners=[{"pod": {"name": n}} for n in "ab"])
    world, data = await written(web=web)
    data["web"] = data["web"][:-1] + ',"claims":{"uid-a":7}}'
    world.restart()
    world.state.node_seen(W1)
    world.list_("21", web=web)
    await world.write(answer(2, data))
    world.state.ledger.past.end()
    (patch,) = await world.write(answer(3))
    assert "claims" not in said(patch, "web")
    # Somebody writes them back.
    _, patch = await world.write(answer(9, data), answer(10), later=REREAD_EVERY_S + 1)
    assert "claims" not in said(patch, "web")
    assert world.state.ledger.past.unsure_since() is None


@pytest.mark.parametrize("claims", ['["u"]', '{"u":"7"}', "7", '{"u":-1}', '{"u":1e99}', "{}"])
async def test_records_that_somebody_has_spoilt_count_for_nothing(claims: str) -> None:
    world, data = await written(web=spec(slots=3))
    data["web"] = data["web"][:-1] + f',"claims":{claims}' + "}"
    world.restart()
    world.state.node_seen(W1)
    world.put(web=spec(slots=3), version="6")
    await world.write(answer(2, data), answer(3))
    assert world.state.ledger.held_on("worker-1")["cpu"] == 6000
