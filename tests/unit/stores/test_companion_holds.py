"""Holds in the companion of a ConfigMap: lost and regained room, and very many of them."""

import asyncio
import json
from collections.abc import Sequence
from functools import partial

import pytest

from reserver.base.pacer import Pacer
from reserver.cluster.snapshot import Snapshot
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import Metadata
from reserver.reservations.status import ShortNodes
from reserver.stores.configmap import status
from tests.builders import NOW, node, pod
from tests.unit.k8s.fakes import PatientClient, always, never, refused
from tests.unit.stores.companions import MISSING, TAKER, W1, World, answer, said, spec, written
from tests.waiting import until

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
        assert message.startswith("web: worker-1 has too little cpu: pods and other holds use it")
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
    await until(lambda: len(client.requests) >= 26)
    task.cancel()
    events = [(request.body["reason"], request.body["message"]) for request in client.requests]
    assert events[0] == ("NotBacked", "web-0: no room")
    assert events[24] == ("NotBacked", "web-24: no room (the rest is in the status)")
    assert events[25] == ("InvalidReservation", "api: broken")


# Many at once.


@pytest.mark.long
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
        await until(lambda: world.client.requests, pause_s=0)
        world.state.pod_seen(pod("taker", node="worker-1", cpu="64"))
        world.put(**many, late=spec())

    task = asyncio.create_task(take_all())
    _, create = await world.write(MISSING, answer(1))
    await task
    backed = {key for key, text in create.body["data"].items() if json.loads(text)["backed"]}
    assert "late" not in backed
    (patch,) = await world.write(answer(2))
    assert patch.body["data"].keys() == backed | {"late"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str] | None]:
    """Return the nodes of each look; None for all nodes."""
    asked: list[Sequence[str] | None] = []
    of = ShortNodes.of

    def noted(snapshot: Snapshot, nodes: Sequence[str] | None = None) -> ShortNodes:
        asked.append(nodes)
        return of(snapshot, nodes)

    monkeypatch.setattr(ShortNodes, "of", noted)
    return asked


async def test_a_pass_looks_at_all_nodes_no_more_often_the_more_it_has_to_say(
    monkeypatch: pytest.MonkeyPatch, asked: list[Sequence[str] | None]
) -> None:
    monkeypatch.setattr(status, "Pacer", partial(Pacer, 0.0))
    looks = []
    for count in (2, 200):
        world = World(things=(node("worker-1", cpu="64", pods="20000"),))
        world.put(**{f"r{number}": spec(resources={"cpu": "1m"}) for number in range(count)})
        asked.clear()
        await world.write(MISSING, answer(1))
        assert asked.count(("worker-1",)) == count
        looks.append(asked.count(None))
    assert looks[0] == looks[1]


async def test_a_turn_looks_at_the_nodes_of_many_entries_at_once(
    monkeypatch: pytest.MonkeyPatch, asked: list[Sequence[str] | None]
) -> None:
    monkeypatch.setattr(status, "Pacer", partial(Pacer, timer=lambda: 0.0))
    names = [f"worker-{number}" for number in range(128)]
    world = World(things=tuple(node(name, cpu=str(1 + n % 2)) for n, name in enumerate(names)))
    world.put(**{name: spec(node=name, resources={"cpu": "2"}) for name in names})
    asked.clear()
    _, create = await world.write(MISSING, answer(1))
    looks = [each for each in asked if each is not None]
    assert len(looks) < 10
    assert {name for each in looks for name in each} == set(names)
    backed = {name for name, text in create.body["data"].items() if json.loads(text)["backed"]}
    assert backed == set(names[1::2])


async def test_a_companion_waits_until_it_may_be_written() -> None:
    world = World()
    world.put(web=spec())
    world.client.script.append(MISSING)
    await world.writer.write(world.state, never)
    assert [each.verb for each in world.client.requests] == ["get"]
    (create,) = await world.write(answer(1))
    assert create.verb == "create"
    assert said(create, "web")["phase"] == "Active"


async def test_it_writes_until_it_is_stopped(pauses: list[float]) -> None:
    world = World()
    client = PatientClient(MISSING, answer(1), answer(2))
    world.writer.client = client
    world.put(web=spec())
    task = asyncio.create_task(world.writer.run(world.state, always, always))
    await until(lambda: world.writer.writes >= 1)
    world.put(web=spec(), api=spec())
    await until(lambda: world.writer.writes >= 2)
    task.cancel()
    assert 0.5 in pauses
