"""gRPC calls in a namespace with a quota."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from reserver.v1 import capacity_pb2 as pb_capacity
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.capacity_pb2_grpc import CapacityServiceStub
from tests.integration.quota.objects import held, limit
from tests.integration.world import SYSTEM, World
from tests.waiting import until


async def test_calls_that_do_not_wait_are_refused_at_once_and_create_waits(world: World) -> None:
    await limit(world, namespace=SYSTEM, hard={"held.cpu": "2"}, maxTTL="48h")
    await until(lambda: bool(world.running.assembly.ledger.quotas.of(SYSTEM)))
    first = (await world.api.Create(pb.CreateRequest(name="a", spec=spec("1")))).reservation
    assert first.status.phase == pb.PHASE_ACTIVE
    entries = [pb.CreateSetRequest.Entry(name=name, spec=spec("1")) for name in ("b", "c")]
    error = await refused(world.api.CreateSet(pb.CreateSetRequest(reservations=entries)))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == (
        "exceeded quota: team-quota, requested: held.cpu=2, used: held.cpu=1, limited: held.cpu=2"
    )
    error = await refused(world.api.Update(pb.UpdateRequest(name="a", spec=spec("3"))))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    longer = pb.ExtendRequest(name="a", ttl=Duration(seconds=49 * 3600))
    error = await refused(world.api.Extend(longer))
    assert "maxTTL=48h" in (error.details() or "")
    alone = pb.CreateRequest(name="b", spec=spec("2"), no_wait=True)
    error = await refused(world.api.Create(alone))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "exceeded quota: team-quota, requested: held.cpu=2" in (error.details() or "")
    second = (await world.api.Create(pb.CreateRequest(name="b", spec=spec("2")))).reservation
    assert second.status.phase == pb.PHASE_PENDING
    assert "exceeded quota: team-quota, requested: held.cpu=2" in second.status.message
    what_if = pb_capacity.WhatIfRequest(reservations=[spec("2")])
    stub = CapacityServiceStub(world.channel)
    answer = await stub.WhatIf(what_if)
    assert "exceeded quota: team-quota" in answer.shortages[0].message
    await world.api.Release(pb.ReleaseRequest(name="a"))
    await until(lambda: held(world.running.assembly) == 2000)


def spec(cpu: str) -> pb.ReservationSpec:
    owner = pb.Owner(pod=pb.PodOwner(name="web-0", namespace="shop"))
    return pb.ReservationSpec(owners=[owner], node="worker-1", resources={"cpu": cpu})


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value
