"""The gRPC API on the embedded cluster, called with the generated stubs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from reserver.reservations.enums import StoreKind
from reserver.v1 import reservation_pb2 as pb
from tests.integration.world import CONFIGMAPS, OBJECTS, World, again, serving
from tests.waiting import until


@pytest.fixture(params=StoreKind)
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Reserver that writes what is created into each of the stores."""
    async with serving(tmp_path, store=request.param) as world:
        yield world


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


def entries(*specs: Any, prefix: str = "part") -> Any:
    return [
        pb.CreateSetRequest.Entry(name=f"{prefix}-{index}", spec=each)
        for index, each in enumerate(specs)
    ]


async def test_a_set_is_created_whole(world: World) -> None:
    wanted = entries(spec("worker-1", cpu="3"), spec("worker-2", cpu="3"))
    answer = await world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))
    assert [each.status.backed for each in answer.reservations] == [True, True]
    assert sorted(await world.written()) == ["part-0", "part-1"]


async def test_a_set_of_which_one_does_not_fit_leaves_nothing(world: World) -> None:
    await world.api.Create(pb.CreateRequest(name="first", spec=spec("worker-2", cpu="3")))
    wanted = entries(spec("worker-1", cpu="3"), spec("worker-2", cpu="3"))
    code, reason, fields = await refused(
        world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))
    )
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "NO_ROOM")
    assert fields == {"reservations[1]": "worker-2 has too little cpu (1 of 3) free"}
    assert list(await world.written()) == ["first"]
    assert not world.running.assembly.ledger.held_on("worker-1")


@pytest.mark.parametrize(
    "impossible",
    [
        [spec("worker-1", cpu="400")],
        [spec("nowhere")],
        [spec("worker-1", cpu="3"), spec("worker-1", cpu="3")],
    ],
    ids=["too-large", "no-node", "too-much-together"],
)
async def test_a_set_that_can_never_fit_is_told_so(world: World, impossible: Any) -> None:
    request = pb.CreateSetRequest(reservations=entries(*impossible))
    code, reason, _ = await refused(world.api.CreateSet(request))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT")
    assert not len(world.running.assembly.ledger)


async def test_a_refusal_of_much_and_of_long_words_arrives(world: World) -> None:
    request = pb.CreateSetRequest(reservations=entries(*[spec("n" * 200)] * 500))
    code, reason, fields = await refused(world.api.CreateSet(request))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CAN_NEVER_FIT")
    assert "reservations[0]" in fields
    code, _, fields = await refused(
        world.api.Create(pb.CreateRequest(name="\N{SNOWMAN}" * 2**18, spec=spec()))
    )
    assert (code, list(fields)) == (grpc.StatusCode.INVALID_ARGUMENT, ["name"])
    code, reason, _ = await refused(world.api.Create(pb.CreateRequest(name="n" * 2**21)))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_TOO_LONG")
    large = spec()
    large.owners.extend(pb.Owner(pod=pb.PodOwner(name="x" * 200)) for _ in range(5000))
    code, *_ = await refused(world.api.Create(pb.CreateRequest(name="large", spec=large)))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert not len(world.running.assembly.ledger)


async def test_sets_from_many_clients_never_hold_more_than_there_is(world: World) -> None:
    async def one(number: int) -> bool:
        wanted = entries(spec("worker-1"), spec("worker-2"), prefix=f"set{number}")
        call = world.api.CreateSet(pb.CreateSetRequest(reservations=wanted))
        code = await call.code()
        assert code in {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
        return code is grpc.StatusCode.OK

    created = await asyncio.gather(*map(one, range(30)))
    assert sum(created) == 4
    assert len(await world.written()) == 8
    for node in ("worker-1", "worker-2"):
        assert world.running.assembly.ledger.held_on(node)["cpu"] == 4000


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


async def test_slots_that_were_claimed_come_back_only_where_there_is_room(world: World) -> None:
    owners = [pb.Owner(pod=pb.PodOwner(name=f"web-{n}", namespace="shop")) for n in range(2)]
    wanted = pb.ReservationSpec(owners=owners, node="worker-1", resources={"cpu": "1"}, slots=2)
    ref = (await world.api.Create(pb.CreateRequest(name="first", spec=wanted))).reservation.id
    ledger = world.running.assembly.ledger
    pods = "/api/v1/namespaces/shop/pods"
    where = {"nodeName": "worker-1", "containers": [{"name": "c", "image": "i"}]}
    named = {"metadata": {"name": "web-0"}, "spec": where}
    await world.cluster.client.send("POST", pods, named)
    await until(lambda: ledger.held_on("worker-1")["cpu"] != 2000)
    await world.cluster.client.send("DELETE", f"{pods}/web-0", {"gracePeriodSeconds": 0})
    await until(lambda: not world.running.assembly.state.pods)
    await world.api.Create(pb.CreateRequest(name="second", spec=spec(cpu="3")))

    longer = pb.ExtendRequest(name=ref, ttl={"seconds": 7200})
    _, reason, _ = await refused(world.api.Extend(longer))
    assert reason == "PARTLY_CLAIMED"
    await world.api.Update(pb.UpdateRequest(name=ref, spec=wanted))  # The same keeps its claim.
    assert ledger.held_on("worker-1")["cpu"] == 4000
    wanted.policy = pb.POLICY_REQUIRE
    _, reason, _ = await refused(world.api.Update(pb.UpdateRequest(name=ref, spec=wanted)))
    assert reason == "NO_ROOM"
    wanted.slots = 1
    again = (await world.api.Update(pb.UpdateRequest(name=ref, spec=wanted))).reservation
    assert (again.status.backed, ledger.held_on("worker-1")["cpu"]) == (True, 4000)


async def claimed(world: World, *, by_edition: bool) -> str:
    """Reserve what is reusable, and claim it; return its id once that is known."""
    wanted = pb.CreateRequest(name="train", spec=spec(reusable=True))
    made = (await world.api.Create(wanted)).reservation
    ((known, _),) = world.running.assembly.ledger
    claims = json.dumps([known.edition if by_edition else known.identity])
    metadata = {"name": "web-0", "annotations": {"reserver.io/claims": claims}}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    where = {"nodeName": "worker-1", "containers": [container]}
    pods = "/api/v1/namespaces/shop/pods"
    await world.cluster.client.send("POST", pods, {"metadata": metadata, "spec": where})
    await watched(world, lambda seen: seen.status.phase == pb.PHASE_CLAIMED)
    return str(made.id)


async def watched(world: World, is_so: Callable[[Any], bool]) -> None:
    """Return once a watch has shown a reservation of which something is so."""
    async with asyncio.timeout(20):
        async for change in world.api.Watch(pb.WatchRequest()):
            if is_so(change.reservation):
                return


async def shown(api: Any, name: str) -> pb.Reservation:
    found: pb.Reservation = (await api.Get(pb.GetRequest(name=name))).reservation
    return found


async def test_what_is_reusable_is_extended_while_pods_have_its_slots(
    world: World, tmp_path: Path
) -> None:
    """By each way to write it, and a restart knows it, too."""
    name, client = await claimed(world, by_edition=False), world.cluster.client
    longer = await world.api.Extend(pb.ExtendRequest(name=name, ttl={"seconds": 7200}))
    assert longer.reservation.status.phase == pb.PHASE_CLAIMED
    later = spec(reusable=True, ttl={"seconds": 9000})
    updated = await world.api.Update(pb.UpdateRequest(name=name, spec=later))
    assert updated.reservation.status.phase == pb.PHASE_CLAIMED
    assert updated.reservation.etag != longer.reservation.etag

    written = json.loads((await world.written())["train"]) | {"expiresAt": "2040-01-31T10:00:00Z"}
    path, patch = f"{CONFIGMAPS}/reservations", {"data": {"train": json.dumps(written)}}
    if world.writes_objects:
        path, patch = f"{OBJECTS}/train", {"spec": written}
    await client.send("PATCH", path, patch, media="application/merge-patch+json")
    await watched(world, lambda seen: seen.spec.expires_at.ToDatetime().year == 2040)
    assert (await shown(world.api, name)).status.phase == pb.PHASE_CLAIMED
    assert not world.running.assembly.ledger.held_on("worker-1")
    kind = StoreKind.OBJECT if world.writes_objects else StoreKind.CONFIGMAP
    async with again(tmp_path, kind) as api:
        assert (await shown(api, name)).status.phase == pb.PHASE_CLAIMED


async def test_claims_of_an_older_version_are_not_lost_by_an_extension(world: World) -> None:
    name = await claimed(world, by_edition=True)
    longer = pb.ExtendRequest(name=name, ttl={"seconds": 7200})
    _, reason, _ = await refused(world.api.Extend(longer))
    assert reason == "PARTLY_CLAIMED"
    later = spec(reusable=True, cpu="1", ttl={"seconds": 7200})
    await world.api.Create(pb.CreateRequest(name="rest", spec=spec(owner="web-1", cpu="3")))
    _, reason, _ = await refused(world.api.Update(pb.UpdateRequest(name=name, spec=later)))
    assert reason == "NO_ROOM"


async def test_reflection_lists_the_services(world: World) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(world.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    async for answer in stub.ServerReflectionInfo(iter([request])):
        names = {each.name for each in answer.list_services_response.service}
        assert {"reserver.v1.ReservationService", "grpc.health.v1.Health"} <= names
        break
