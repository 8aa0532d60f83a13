"""Reservations without a node over gRPC: placed at once, together, or refused with the reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from reserver.base.pacer import Pacer
from reserver.client import Client, Phase, PodOwner, Spec
from reserver.extender.cluster_watches import PODS
from reserver.grpc import creation
from reserver.process import background
from reserver.reservations.enums import StoreKind
from reserver.stores.object.cache import ObjectCache
from reserver.v1 import capacity_pb2
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.capacity_pb2_grpc import CapacityServiceStub
from tests.builders import pod
from tests.integration.grpc.calls import create, create_set, get, parts, placeless, refused, spec
from tests.integration.world import World, serving

SPREAD = pb.Placement(strategy=pb.Placement.STRATEGY_SPREAD)


async def written_parts(world: World, name: str) -> list[dict[str, Any]]:
    """Return the placements of a reservation in its store."""
    if world.writes_objects:
        status = (await world.objects())[name]["status"]
        return list(status["placements"])
    return list(json.loads((await world.data())[name])["placements"])


async def test_it_is_placed_when_create_returns_and_its_node_is_written(world: World) -> None:
    await create(world, "first", spec(node="worker-2", cpu="1"))
    made = await create(world, "second", placeless("2"))
    assert made.status.phase == pb.PHASE_ACTIVE
    assert made.status.backed
    assert parts(made) == {"worker-2": 1}
    assert made.spec.node == ""
    assert await written_parts(world, "second") == [{"node": "worker-2", "slots": 1}]
    assert await get(world, "second") == made
    found = await world.api.List(pb.ListRequest(filter=pb.ReservationFilter(node="worker-2")))
    assert [each.name for each in found.reservations] == ["first", "second"]


async def test_one_that_has_no_place_says_why_and_gets_one_as_soon_as_there_is_room(
    world: World,
) -> None:
    await create(world, "first", spec(cpu="3"))
    made = await create(world, "second", placeless("3", slots=2))
    assert made.status.phase == pb.PHASE_PENDING
    assert "there is room for 1 of 2 slots; 1/2 nodes are available" in made.status.message
    assert parts(made) == {}
    await world.api.Release(pb.ReleaseRequest(name="first"))
    active = pb.ReservationFilter(phases=[pb.PHASE_ACTIVE])
    async with asyncio.timeout(20):
        async for change in world.api.Watch(pb.WatchRequest(filter=active)):
            if change.reservation.name == "second":
                break
    assert parts(change.reservation) == {"worker-1": 1, "worker-2": 1}


async def test_a_set_is_placed_beside_each_other_or_not_at_all(world: World) -> None:
    three = {name: placeless("2") for name in ("a", "b", "c")}
    made = await create_set(world, **three, pinned=spec(node="worker-1", cpu="1"))
    by_node: dict[str, int] = {}
    for each in made:
        assert each.status.backed
        for node, slots in parts(each).items():
            by_node[node] = by_node.get(node, 0) + slots
    assert by_node == {"worker-1": 2, "worker-2": 2}
    code, reason, fields = await refused(create_set(world, d=placeless("1"), e=placeless("3")))
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "NO_ROOM")
    assert list(fields) == ["reservations[1]"]
    assert "nodes are available" in fields["reservations[1]"]
    code, reason, _ = await refused(create_set(world, f=placeless("1"), g=placeless("9")))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT")
    assert set(await world.written()) == {"a", "b", "c", "pinned"}


@contextmanager
def broken(world: World) -> Iterator[None]:
    """Have Reserver lack what happens to pods until the block ends."""
    watch = next(each for each in world.running.assembly.reflectors if each.path == PODS)
    watch._lag.begin(watch._now())
    yield
    watch._lag.end()


async def all_wait(world: World, calls: Sequence[asyncio.Future[Any]]) -> None:
    """Return once calls wait for what Reserver lacks."""
    watch = next(each for each in world.running.assembly.reflectors if each.path == PODS)
    async with asyncio.timeout(20):
        while len(watch.current._waiters) < len(calls):
            assert not any(call.done() for call in calls)
            await asyncio.sleep(0)


async def test_what_is_backed_at_once_waits_for_what_a_broken_watch_is_about_to_show(
    world: World,
) -> None:
    await create(world, "grows", spec(node="worker-1", cpu="1"))
    grown = pb.UpdateRequest(name="grows", spec=spec(node="worker-1", cpu="4"))
    wanted = pb.CreateRequest(name="one", spec=spec(node="worker-1", cpu="3"), no_wait=True)
    with broken(world):
        calls = [
            asyncio.ensure_future(each)
            for each in (
                create_set(world, a=spec(node="worker-1", cpu="3")),
                world.api.Create(wanted),
                world.api.Update(grown),
            )
        ]
        await all_wait(world, calls)
        world.running.assembly.state.pod_seen(pod("late", node="worker-1", cpu="1"))
    for call in calls:
        code, reason, _ = await refused(call)
        assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "NO_ROOM")


async def test_of_sets_that_ask_at_once_for_the_same_room_one_gets_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "Pacer", partial(Pacer, 0.0))  # It gives way at each step.
    asked = [
        create_set(world, **{f"{name}-{n}": placeless("3") for n in range(2)}) for name in "ab"
    ]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    (made,) = [each for each in answers if not isinstance(each, BaseException)]
    (told,) = [each for each in answers if isinstance(each, grpc.aio.AioRpcError)]
    assert told.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert {node for each in made for node in parts(each)} == {"worker-1", "worker-2"}
    assert set(await world.written()) == {each.name for each in made}


async def test_a_request_that_is_repeated_before_it_is_answered_is_carried_out_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "Pacer", partial(Pacer, 0.0))
    request = pb.CreateRequest(name="r", spec=placeless("3"), request_id="once", no_wait=True)
    first, second = await asyncio.gather(*[world.api.Create(request) for _ in range(2)])
    assert first == second
    assert first.reservation.status.backed
    assert set(await world.written()) == {"r"}


async def test_who_calls_off_a_set_at_any_turn_leaves_nothing_or_all_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "Pacer", partial(Pacer, 0.0))
    for turn in range(40):
        names = [f"r{turn}-{number}" for number in range(8)]
        entries = [pb.CreateSetRequest.Entry(name=n, spec=placeless("100m")) for n in names]
        timeout = turn / 4_000  # Seconds; the first are over before they begin.
        with suppress(grpc.aio.AioRpcError):
            await world.api.CreateSet(pb.CreateSetRequest(reservations=entries), timeout=timeout)
        state = world.running.assembly.state
        assert not state.snapshot.requested.any()
        there = list(filter(world.running.assembly.stores.find, names))
        assert there in ([], names)
        for name in there:
            with suppress(grpc.aio.AioRpcError):  # It may be written still: then all go.
                await world.api.Release(pb.ReleaseRequest(name=name))
    assert await create(world, "last", placeless("3"))


async def test_reserver_ends_though_a_watch_will_not_show_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_WRITES_S", 0.01)
    monkeypatch.setattr(ObjectCache, "_is_unrecorded", lambda *_: True)  # Its place is not shown.
    async with asyncio.timeout(30):
        async with serving(tmp_path, store=StoreKind.OBJECT) as world:
            request = pb.CreateRequest(name="r", spec=placeless("1"))
            with pytest.raises(grpc.aio.AioRpcError):
                await world.api.Create(request, timeout=0.5)
            assert await world.written()


async def test_what_if_says_where_each_would_go_and_changes_nothing(world: World) -> None:
    capacity: Any = CapacityServiceStub(world.channel)
    wanted = [placeless("3"), placeless("3"), spec(node="worker-1", cpu="1"), placeless("4")]
    answer = await capacity.WhatIf(capacity_pb2.WhatIfRequest(reservations=wanted))
    where = [{part.node: part.slots for part in each.parts} for each in answer.placements]
    assert sorted(map(sorted, where[:2])) == [["worker-1"], ["worker-2"]]
    assert where[2:] == [{"worker-1": 1}, {}]
    assert [(each.index, each.never) for each in answer.shortages] == [(3, False)]
    state = world.running.assembly.state
    assert not state.snapshot.requested.any()
    assert len(state.ledger) == 0


async def test_a_placement_that_is_wrong_is_refused_at_its_field(world: World) -> None:
    both = spec(node="worker-1", placement=SPREAD)
    bad = placeless("1", placement=pb.Placement(tolerations=[{"key": "a", "effekt": "b"}]))
    for wanted, field in ((both, "spec.placement"), (bad, "spec.placement.tolerations[0].effekt")):
        code, _, fields = await refused(create(world, "r", wanted))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert list(fields) == [field]


async def test_the_typed_client_asks_for_a_place(world: World) -> None:
    wanted = Spec(
        owners=[PodOwner(namespace="shop", name="web-0")],
        resources={"cpu": "1"},
        slots=2,
        placement={
            "nodeSelector": {"kubernetes.io/hostname": "worker-2"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "strategy": "spread",
        },
    )
    address = world.running.grpc_address
    assert address is not None
    async with Client(address) as client:
        made = await client.create("typed", wanted)
    assert made.phase is Phase.ACTIVE
    assert [tuple(part) for part in made.placements] == [("worker-2", 2)]
