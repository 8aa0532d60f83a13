"""The gRPC API on Reservation objects, including objects of other writers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from reserver.reservations.enums import StoreKind
from reserver.reservations.reservation import Ref
from reserver.stores.object.writer import ObjectWriter
from reserver.v1 import reservation_pb2 as pb
from tests.integration.grpc.calls import refused, seen, spec
from tests.integration.world import OBJECTS, SYSTEM, World, again, serving

OBJECT = {"owners": [{"pod": {"name": "web-0"}}], "node": "worker-1", "resources": {"cpu": "1"}}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with serving(tmp_path) as world:
        yield world


async def create(world: World, name: str, namespace: str = "shop", **metadata: Any) -> None:
    """Create an object as kubectl does."""
    path = OBJECTS.replace(SYSTEM, namespace)
    body = {"metadata": {"name": name, **metadata}, "spec": OBJECT}
    await world.cluster.client.send("POST", path, body)


async def test_objects_that_people_write_are_shown_changed_and_released(world: World) -> None:
    await create(world, "mine")
    await seen(world, "shop/mine")
    found = (await world.api.Get(pb.GetRequest(name="shop/mine"))).reservation
    assert (found.name, found.spec.owners[0].pod.name) == ("mine", "web-0")
    assert found.status.backed
    listed = await world.api.List(pb.ListRequest(filter=pb.ReservationFilter(owner="shop/web-0")))
    assert [each.id for each in listed.reservations] == ["shop/mine"]

    more = await world.api.Update(pb.UpdateRequest(name="shop/mine", spec=spec(cpu="2")))
    assert more.reservation.spec.resources == {"cpu": "2"}
    assert more.reservation.spec.expires_at == found.spec.expires_at
    assert world.running.assembly.ledger.held_on("worker-1")["cpu"] == 2000
    stale = pb.UpdateRequest(name="shop/mine", spec=spec(), etag=found.etag)
    code, *_ = await refused(world.api.Update(stale))
    assert code is grpc.StatusCode.ABORTED
    longer = pb.ExtendRequest(name="shop/mine")
    longer.ttl.seconds = 0
    code, reason, _ = await refused(world.api.Extend(longer))  # A team's default quota: a week.
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
    longer.ttl.seconds = 3 * 86_400
    extended = (await world.api.Extend(longer)).reservation.spec
    assert extended.expires_at.seconds > found.spec.expires_at.seconds

    await world.api.Release(pb.ReleaseRequest(name="shop/mine"))
    assert not world.running.assembly.ledger.held_on("worker-1")
    assert (await refused(world.api.Get(pb.GetRequest(name="shop/mine"))))[0] is (
        grpc.StatusCode.NOT_FOUND
    )


async def test_beyond_home_an_object_is_for_owners_of_its_namespace(world: World) -> None:
    await create(world, "mine")
    await seen(world, "shop/mine")
    foreign = spec()
    foreign.owners[0].pod.namespace = "blog"
    code, reason, fields = await refused(
        world.api.Update(pb.UpdateRequest(name="shop/mine", spec=foreign))
    )
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert list(fields) == ["spec.owners[0]"]


async def test_a_name_is_taken_whichever_store_has_it(world: World) -> None:
    await create(world, "mine", SYSTEM)
    await seen(world, f"{SYSTEM}/mine")
    code, reason, _ = await refused(world.api.Create(pb.CreateRequest(name="mine", spec=spec())))
    assert (code, reason) == (grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN")
    assert (await world.api.Get(pb.GetRequest(name="mine"))).reservation.id == f"{SYSTEM}/mine"


async def test_a_change_of_an_object_keeps_what_it_is_known_by(tmp_path: Path) -> None:
    async with serving(tmp_path, store=StoreKind.OBJECT) as world:
        await world.api.Create(pb.CreateRequest(name="mine", spec=spec(), request_id="r-1"))
        before = json.loads((await world.written())["mine"])
        assert before["origin"].startswith(f"{SYSTEM}/mine#")
        await world.api.Update(pb.UpdateRequest(name="mine", spec=spec(cpu="2")))
        after = json.loads((await world.written())["mine"])
        assert (after["origin"], after["requestId"]) == (before["origin"], "r-1")


async def test_whoever_starts_takes_back_a_set_that_was_not_finished(
    world: World, tmp_path: Path
) -> None:
    lead = {"reserver.io/unfinished-set": "3"}
    await create(world, "part-0", SYSTEM, labels={"reserver.io/set": "s"}, annotations=lead)
    await create(world, "part-1", SYSTEM, labels={"reserver.io/set": "s"})
    await create(world, "whole", SYSTEM, labels={"reserver.io/set": "t"})
    await create(world, "alone", SYSTEM)
    async with again(tmp_path) as api, asyncio.timeout(20):
        while len(await world.objects()) > 2:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)
        assert sorted(await world.objects()) == ["alone", "whole"]
        wanted = [pb.CreateSetRequest.Entry(name=f"part-{n}", spec=spec()) for n in range(2)]
        request = pb.CreateSetRequest(reservations=wanted)
        while True:
            call = api.CreateSet(request)
            if await call.code() is grpc.StatusCode.OK:
                break
            assert await call.code() is grpc.StatusCode.UNAVAILABLE  # It is being taken back.


async def test_a_set_that_another_reserver_is_still_writing_is_not_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    finish = ObjectWriter._finish

    async def late(writer: ObjectWriter, first: Ref, set_id: str) -> Any:
        begun.set()
        await may_end.wait()  # Should this Reserver end now, the next to start deletes the set.
        return await finish(writer, first, set_id)

    monkeypatch.setattr(ObjectWriter, "_finish", late)
    entries = [pb.CreateSetRequest.Entry(name=f"part-{n}", spec=spec()) for n in range(2)]
    request = pb.CreateSetRequest(reservations=entries, request_id="r-1")
    async with serving(tmp_path, store=StoreKind.OBJECT) as world, AsyncExitStack() as stack:
        beside = await stack.enter_async_context(again(tmp_path, StoreKind.OBJECT))
        writing = asyncio.ensure_future(world.api.CreateSet(request))
        async with asyncio.timeout(20):
            await begun.wait()
            while len((await beside.List(pb.ListRequest())).reservations) < len(entries):
                pass
            code, *_ = await refused(beside.CreateSet(request))
            assert code is grpc.StatusCode.UNAVAILABLE
            may_end.set()
            made = (await writing).reservations
            while await (call := beside.CreateSet(request)).code() is not grpc.StatusCode.OK:
                assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert [each.id for each in (await call).reservations] == [each.id for each in made]


async def test_labels_of_objects_are_shown_selected_and_followed(world: World) -> None:
    await create(world, "ours", labels={"team": "shop"})
    await create(world, "bare")
    await seen(world, "shop/ours")
    await seen(world, "shop/bare")

    async def called(selector: str) -> list[str]:
        meant = pb.ReservationFilter(label_selector=selector)
        listed = await world.api.List(pb.ListRequest(filter=meant))
        return [each.name for each in listed.reservations]

    assert await called("team=shop") == ["ours"]
    assert await called("!team") == ["bare"]
    watch = world.api.Watch(
        pb.WatchRequest(filter=pb.ReservationFilter(label_selector="team=bank"))
    )
    path = f"{OBJECTS.replace(SYSTEM, 'shop')}/bare"
    many = {f"z-{number:03}": "" for number in range(100)}
    patch = {"metadata": {"labels": {"team": "bank", **many}}}
    await world.cluster.client.send("PATCH", path, patch, media="application/merge-patch+json")
    async with asyncio.timeout(20):
        while not (told := (await watch.read()).reservation).id:
            pass
    watch.cancel()
    assert told.name == "bare"
    assert len(told.labels) == 64


async def metadata_of(world: World, path: str) -> dict[str, Any]:
    """Return the metadata that the API server has of an object."""
    found: dict[str, Any] = json.loads(await world.cluster.client.send("GET", path))["metadata"]
    return found


async def labels_of(world: World, name: str, namespace: str = SYSTEM) -> dict[str, str] | None:
    """Return the labels that the API server has of an object."""
    path = f"{OBJECTS.replace(SYSTEM, namespace)}/{name}"
    found: dict[str, str] | None = (await metadata_of(world, path)).get("labels")
    return found


async def test_labels_that_a_request_gives_are_those_of_the_object(tmp_path: Path) -> None:
    async with serving(tmp_path, store=StoreKind.OBJECT) as world:
        team = {"team": "shop", "example.com/tier": ""}
        made = await world.api.Create(pb.CreateRequest(name="a", spec=spec(cpu="1"), labels=team))
        assert made.reservation.labels == team
        assert await labels_of(world, "a") == team
        entries = [
            pb.CreateSetRequest.Entry(name="b", spec=spec(cpu="1"), labels=team),
            pb.CreateSetRequest.Entry(name="c", spec=spec(cpu="1")),
        ]
        both = (await world.api.CreateSet(pb.CreateSetRequest(reservations=entries))).reservations
        assert [each.labels.get("team") for each in both] == ["shop", None]
        meant = pb.ReservationFilter(label_selector="team=shop")
        listed = await world.api.List(pb.ListRequest(filter=meant))
        assert [each.name for each in listed.reservations] == ["a", "b"]


async def test_an_update_sets_labels_and_leaves_those_of_others(world: World) -> None:
    await create(world, "bare")
    await seen(world, "shop/bare")

    async def update(cpu: str, **labels: str) -> pb.Reservation:
        request = pb.UpdateRequest(name="shop/bare", spec=spec(cpu=cpu), labels=labels)
        answer: pb.UpdateResponse = await world.api.Update(request)
        return answer.reservation

    assert (await update("1", team="shop")).labels == {"team": "shop"}
    path = f"{OBJECTS.replace(SYSTEM, 'shop')}/bare"
    patch = {"metadata": {"labels": {"by": "kubectl"}}}
    await world.cluster.client.send("PATCH", path, patch, media="application/merge-patch+json")
    changed = await update("2", team="bank")
    assert changed.spec.resources == {"cpu": "2"}
    assert await labels_of(world, "bare", "shop") == {"team": "bank", "by": "kubectl"}
    before = (await metadata_of(world, path))["resourceVersion"]
    assert (await update("2", team="bank")).labels == {"team": "bank", "by": "kubectl"}
    after = (await metadata_of(world, path))["resourceVersion"]
    assert after == before  # There was nothing to write.


async def test_an_update_takes_labels_away(world: World) -> None:
    await create(world, "many", labels={"team": "shop", "by": "kubectl", "a/b": ""})
    await seen(world, "shop/many")

    def request(*keys: str, **labels: str) -> pb.UpdateRequest:
        return pb.UpdateRequest(
            name="shop/many", spec=spec(cpu="1"), labels=labels, remove_labels=keys
        )

    changed = (
        await world.api.Update(request("team", "a/b", "never-there", tier="gold"))
    ).reservation
    assert changed.labels == {"by": "kubectl", "tier": "gold"}
    assert await labels_of(world, "many", "shop") == {"by": "kubectl", "tier": "gold"}
    again = (await world.api.Update(request("team"))).reservation
    assert again.labels == {"by": "kubectl", "tier": "gold"}
    await world.api.Update(request("by", "tier"))
    assert not await labels_of(world, "many", "shop")
    for wrong, said in (
        (request("by", by="me"), "by is in labels as well"),
        (request("reserver.io/set"), "is written by Reserver only"),
        (request("a b"), "is not a label's key"),
    ):
        code, _, fields = await refused(world.api.Update(wrong))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert said in fields["removeLabels"]


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({"a b": ""}, "is not a label's key"),
        ({"a": "b c"}, "is not a label's value"),
        ({"reserver.io/set": "s"}, "is written by Reserver only"),
        ({f"l-{number}": "" for number in range(65)}, "65 entries are too many"),
    ],
)
async def test_labels_that_cannot_be_are_refused(
    tmp_path: Path, labels: dict[str, str], problem: str
) -> None:
    async with serving(tmp_path, store=StoreKind.OBJECT) as world:
        request = pb.CreateRequest(name="a", spec=spec(), labels=labels)
        code, _, fields = await refused(world.api.Create(request))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert problem in fields["labels"]
        assert not await world.objects()


async def test_a_server_that_writes_config_maps_refuses_labels(world: World) -> None:
    labels = {"team": "shop"}
    request = pb.CreateRequest(name="a", spec=spec(), labels=labels)
    code, _, fields = await refused(world.api.Create(request))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "a key of a ConfigMap has no labels" in fields["labels"]
    entry = pb.CreateSetRequest.Entry(name="a", spec=spec(), labels=labels)
    _, _, fields = await refused(world.api.CreateSet(pb.CreateSetRequest(reservations=[entry])))
    assert list(fields) == ["reservations[0].labels"]
    await world.api.Create(pb.CreateRequest(name="a", spec=spec()))
    update = pb.UpdateRequest(name="a", spec=spec(), labels=labels)
    _, _, fields = await refused(world.api.Update(update))
    assert list(fields) == ["labels"]
    update = pb.UpdateRequest(name="a", spec=spec(), remove_labels=labels)
    _, _, fields = await refused(world.api.Update(update))
    assert list(fields) == ["removeLabels"]
