"""Lists and watches over gRPC: filters, pages, resumption, changes of backing."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from reserver.v1 import reservation_pb2 as pb
from tests.integration.grpc.calls import entries, refused, spec
from tests.integration.world import World


async def test_lists_are_filtered_and_paged(world: World) -> None:
    wanted = entries(
        spec("worker-1"), spec("worker-2", owner="web-1"), spec("worker-2", owner="web-2")
    )
    await world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))

    async def names(**filter_: Any) -> list[str]:
        answer = await world.api.List(pb.ListRequest(filter=pb.ReservationFilter(**filter_)))
        return [each.name for each in answer.reservations]

    assert await names() == ["part-0", "part-1", "part-2"]
    assert await names(node="worker-2") == ["part-1", "part-2"]
    assert await names(owner="shop/web-2") == ["part-2"]
    assert await names(owner="blog/web-2") == []
    assert await names(owner_namespace="shop", node="worker-1") == ["part-0"]
    assert await names(phases=[pb.PHASE_EXPIRED]) == []
    page = await world.api.List(pb.ListRequest(page_size=2))
    assert [each.name for each in page.reservations] == ["part-0", "part-1"]
    rest = await world.api.List(pb.ListRequest(page_size=2, page_token=page.next_page_token))
    assert [each.name for each in rest.reservations] == ["part-2"]
    assert not rest.next_page_token


async def test_a_watch_tells_what_is_there_then_what_changes_and_resumes(world: World) -> None:
    kinds = pb.WatchResponse
    await world.api.Create(pb.CreateRequest(name="first", spec=spec()))
    watch = world.api.Watch(pb.WatchRequest())
    told = [await watch.read(), await watch.read()]
    assert [each.kind for each in told] == [kinds.KIND_ADDED, kinds.KIND_BOOKMARK]
    token = told[-1].resume_token
    await world.api.Create(pb.CreateRequest(name="second", spec=spec()))
    added = await watch.read()
    assert (added.kind, added.reservation.name) == (kinds.KIND_ADDED, "second")
    await world.api.Release(pb.ReleaseRequest(name="first"))
    while (change := await watch.read()).kind != kinds.KIND_DELETED:
        assert change.kind == kinds.KIND_MODIFIED
    assert change.reservation.name == "first"
    watch.cancel()

    again = world.api.Watch(pb.WatchRequest(resume_token=token))
    assert (await again.read()).reservation == added.reservation
    again.cancel()
    for old in ("000000000000.1", token.partition(".")[0] + ".999"):
        stale = world.api.Watch(pb.WatchRequest(resume_token=old))
        code, reason, _ = await refused(stale.read())
        assert (code, reason) == (grpc.StatusCode.OUT_OF_RANGE, "TOKEN_TOO_OLD")


async def test_a_watch_tells_when_the_room_of_a_hold_is_taken(world: World) -> None:
    await world.api.Create(pb.CreateRequest(name="first", spec=spec(cpu="3")))
    watch = world.api.Watch(pb.WatchRequest())
    assert (await watch.read()).reservation.status.backed
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "worker-1", "containers": [container]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", pod)
    async with asyncio.timeout(20):
        while (change := await watch.read()).reservation.status.backed or not change.reservation.id:
            pass
    assert "too little cpu" in change.reservation.status.message
