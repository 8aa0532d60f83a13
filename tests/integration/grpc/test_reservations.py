"""One reservation over gRPC: created, changed and released, or refused with the field."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from reserver.reservations.enums import StoreKind
from reserver.v1 import reservation_pb2 as pb
from tests.integration.grpc.calls import entries, refused, spec
from tests.integration.world import World, again


async def test_a_reservation_lives_from_create_to_release(world: World) -> None:
    made = await world.api.Create(pb.CreateRequest(name="web-move", spec=spec(cpu="2")))
    assert made.reservation.status.phase == pb.PHASE_ACTIVE
    assert made.reservation.status.backed
    assert made.reservation.id == world.id_of("web-move")
    assert "web-move" in await world.written()
    assert world.running.assembly.ledger.held_on("worker-1")["cpu"] == 2000

    got = await world.api.Get(pb.GetRequest(name="web-move"))
    assert got.reservation == made.reservation
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    longer = await world.api.Extend(pb.ExtendRequest(name="web-move", expires_at=later))
    assert longer.reservation.spec.expires_at.ToDatetime(UTC) == later
    assert longer.reservation.etag != made.reservation.etag

    smaller = await world.api.Update(pb.UpdateRequest(name="web-move", spec=spec(cpu="1500m")))
    assert smaller.reservation.spec.resources == {"cpu": "1500m"}
    assert smaller.reservation.spec.expires_at.ToDatetime(UTC) == later
    assert world.running.assembly.ledger.held_on("worker-1")["cpu"] == 1500

    await world.api.Release(pb.ReleaseRequest(name="web-move"))
    assert not world.running.assembly.ledger.held_on("worker-1")
    assert not await world.written()
    code, *_ = await refused(world.api.Get(pb.GetRequest(name="web-move")))
    assert code is grpc.StatusCode.NOT_FOUND


async def test_a_hold_on_room_that_is_taken_is_kept_and_says_so(world: World) -> None:
    await world.api.Create(pb.CreateRequest(name="first", spec=spec(cpu="3")))
    second = await world.api.Create(pb.CreateRequest(name="second", spec=spec(cpu="3")))
    assert not second.reservation.status.backed
    assert "too little cpu" in second.reservation.status.message


async def test_the_same_request_twice_creates_one(world: World) -> None:
    request = pb.CreateRequest(name="once", spec=spec(), request_id="r-1")
    first, second = await asyncio.gather(world.api.Create(request), world.api.Create(request))
    assert first.reservation.id == second.reservation.id
    assert list(await world.written()) == ["once"]
    code, reason, fields = await refused(
        world.api.Create(pb.CreateRequest(name="once", spec=spec()))
    )
    assert (code, reason) == (grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN")
    assert fields == {
        "name": "is taken; choose another one, or change that reservation (`reserver update`)"
    }
    other = pb.CreateRequest(name="another", spec=spec(), request_id="r-1")
    code, _, fields = await refused(world.api.Create(other))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "choose one for each request" in fields["requestId"]


@pytest.mark.parametrize("then", StoreKind)
async def test_a_request_that_was_answered_before_a_restart_is_known_after_it(
    world: World, tmp_path: Path, then: StoreKind
) -> None:
    request = pb.CreateRequest(name="once", spec=spec(), request_id="r-1")
    first = await world.api.Create(request)
    wanted = pb.CreateSetRequest(reservations=entries(spec(), spec()), request_id="r-2")
    made = await world.api.CreateSet(wanted)
    async with again(tmp_path, then) as api:
        again_first, again_made = await api.Create(request), await api.CreateSet(wanted)
    for shown in (first.reservation, again_first.reservation, *made.reservations):
        shown.ClearField("since")  # of a key of a ConfigMap, when this process first saw it
    for shown in again_made.reservations:
        shown.ClearField("since")
    assert again_first.reservation == first.reservation
    assert again_made.reservations == made.reservations


@pytest.mark.parametrize(
    ("wanted", "code", "reason"),
    [
        (spec(cpu="3"), grpc.StatusCode.RESOURCE_EXHAUSTED, "NO_ROOM"),
        (spec(cpu="5"), grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT"),
        (spec(node="ghost"), grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT"),
        (spec(node="", cpu="5"), grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT"),
        (
            spec(
                starts_at=datetime(2100, 1, 1, tzinfo=UTC),
                expires_at=datetime(2100, 1, 2, tzinfo=UTC),
            ),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_FIELD",
        ),
    ],
    ids=["taken", "too large", "no such node", "nowhere", "later"],
)
async def test_what_may_not_wait_is_backed_at_once_or_refused(
    world: World, wanted: pb.ReservationSpec, code: grpc.StatusCode, reason: str
) -> None:
    first = pb.CreateRequest(name="first", spec=spec(cpu="2"), no_wait=True)
    assert (await world.api.Create(first)).reservation.status.backed
    request = pb.CreateRequest(name="a", spec=wanted, request_id="r", no_wait=True)
    found, why, fields = await refused(world.api.Create(request))
    assert (found, why) == (code, reason)
    assert set(fields) <= {"spec", "spec.startsAt"}
    assert fields
    assert world.running.assembly.ledger.held_on("worker-1")["cpu"] == 2000
    waits = pb.CreateRequest(name="a", spec=wanted, request_id="r")  # It was not begun: no clash.
    assert not (await world.api.Create(waits)).reservation.status.backed


async def test_of_two_that_create_the_same_name_one_is_told(world: World) -> None:
    calls = [
        world.api.Create(pb.CreateRequest(name="one", spec=spec(n)))
        for n in ("worker-1", "worker-2")
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, grpc.aio.AioRpcError) for answer in answers) == 1
    held = [world.running.assembly.ledger.held_on(node) for node in ("worker-1", "worker-2")]
    assert sorted(map(len, held)) == [0, 2]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.CreateRequest(name="Bad_Name", spec=spec()), "name"),
        (pb.CreateRequest(spec=spec()), "name"),
        (pb.CreateRequest(name="a"), "spec"),
        (pb.CreateRequest(name="a", spec=spec(cpu="lots")), "spec.resources.cpu"),
        (pb.CreateRequest(name="a", spec=spec(cpu="-1")), "spec.resources.cpu"),
        (pb.CreateRequest(name="a", spec=spec(node="A")), "spec.node"),
        (pb.CreateRequest(name="a", spec=spec(owner="")), "spec.owners[0].pod"),
        (pb.CreateRequest(name="a", spec=spec(policy=9)), "spec.policy"),
        (pb.CreateRequest(name="a", spec=spec(slots=-1)), "spec.slots"),
        (pb.CreateRequest(name="a", spec=spec(ttl=timedelta(-1))), "spec.ttl"),
        (
            pb.CreateRequest(name="a", spec=spec(expires_at=datetime(2001, 1, 1, tzinfo=UTC))),
            "spec.expiresAt",
        ),
        (pb.CreateRequest(name="a", spec=spec(), request_id="x" * 65), "requestId"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_is_wrong_is_named_and_nothing_is_held(
    world: World, request_: pb.CreateRequest, field: str
) -> None:
    code, reason, fields = await refused(world.api.Create(request_))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert list(fields) == [field]
    assert not len(world.running.assembly.ledger)


async def test_more_is_held_only_if_it_fits_and_only_by_who_saw_the_latest(world: World) -> None:
    made = (await world.api.Create(pb.CreateRequest(name="first", spec=spec()))).reservation
    grow = pb.UpdateRequest(name="first", spec=spec(cpu="4"))
    assert (await world.api.Update(grow)).reservation.status.backed
    code, *_ = await refused(
        world.api.Update(pb.UpdateRequest(name="first", spec=spec(cpu="2"), etag=made.etag))
    )
    assert code is grpc.StatusCode.ABORTED
    code, reason, _ = await refused(
        world.api.Update(pb.UpdateRequest(name="first", spec=spec(cpu="5")))
    )
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT")


async def test_reflection_lists_the_services(world: World) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(world.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    async for answer in stub.ServerReflectionInfo(iter([request])):
        names = {each.name for each in answer.list_services_response.service}
        assert {"reserver.v1.ReservationService", "grpc.health.v1.Health"} <= names
        break
