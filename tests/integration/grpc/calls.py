"""Calls of the gRPC API: specs, entries of a set, and the details of a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from reserver.v1 import reservation_pb2 as pb
from tests.integration.world import World


def spec(node: str = "worker-1", owner: str = "web-0", cpu: str = "1", **more: Any) -> Any:
    owners = [pb.Owner(pod=pb.PodOwner(name=owner, namespace="shop"))]
    return pb.ReservationSpec(owners=owners, node=node, resources={"cpu": cpu}, **more)


async def refused(call: Any) -> tuple[grpc.StatusCode, str, dict[str, str]]:
    """Return code, reason and fields of the refusal that a call gets."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    metadata = dict(caught.value.trailing_metadata() or ())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    info, fields = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert status.details[0].Unpack(info)
    if len(status.details) > 1:
        assert status.details[1].Unpack(fields)
    violations = {each.field: each.description for each in fields.field_violations}
    return caught.value.code(), info.reason, violations


def entries(*specs: Any, prefix: str = "part") -> Any:
    return [
        pb.CreateSetRequest.Entry(name=f"{prefix}-{index}", spec=each)
        for index, each in enumerate(specs)
    ]


async def shown(api: Any, name: str) -> pb.Reservation:
    found: pb.Reservation = (await api.Get(pb.GetRequest(name=name))).reservation
    return found


def placeless(cpu: str, **more: Any) -> Any:
    return spec(node="", cpu=cpu, **more)


def parts(reservation: Any) -> dict[str, int]:
    return {part.node: part.slots for part in reservation.status.placements}


async def create(world: World, name: str, wanted: Any) -> Any:
    made = await world.api.Create(pb.CreateRequest(name=name, spec=wanted))
    return made.reservation


async def get(world: World, name: str) -> Any:
    return (await world.api.Get(pb.GetRequest(name=name))).reservation


async def create_set(world: World, **wanted: Any) -> Any:
    entries = [pb.CreateSetRequest.Entry(name=n, spec=each) for n, each in wanted.items()]
    made = await world.api.CreateSet(pb.CreateSetRequest(reservations=entries))
    return made.reservations


async def watched(world: World, is_so: Callable[[Any], bool]) -> None:
    """Return once a watch has shown a reservation for which `is_so` is true."""
    async with asyncio.timeout(20):
        async for change in world.api.Watch(pb.WatchRequest()):
            if is_so(change.reservation):
                return


async def seen(world: World, id_: str) -> None:
    """Return once Reserver lists a reservation."""
    await watched(world, lambda each: each.id == id_)
