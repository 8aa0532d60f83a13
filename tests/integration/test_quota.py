"""Quotas on a whole Reserver: objects, gRPC calls, ConfigMaps, starts, and namespaces that go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from typer.testing import CliRunner

from reserver import app
from reserver.cli.main import app as cli
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.process.assembly import Assembly
from reserver.reservations.enums import StoreKind
from reserver.settings.serve import Settings
from reserver.v1 import capacity_pb2 as pb_capacity
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.capacity_pb2_grpc import CapacityServiceStub
from tests.integration.world import SYSTEM, World, serving
from tests.waiting import until, until_answered

GROUP = "/apis/reserver.io/v1alpha1"
MERGE = "application/merge-patch+json"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with serving(tmp_path, "worker-1", "worker-2", store=StoreKind.OBJECT) as world:
        yield world


async def write(world: World, name: str, namespace: str = "shop", **spec: Any) -> None:
    said = {"owners": [{"pod": {"name": name}}], "node": "worker-1", "ttl": "1h", **spec}
    said = {field: value for field, value in said.items() if value is not None}
    body = {
        "apiVersion": "reserver.io/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": name},
        "spec": said,
    }
    await world.cluster.client.send("POST", f"{GROUP}/namespaces/{namespace}/reservations", body)


async def limit(
    world: World, name: str = "team-quota", namespace: str = "shop", **spec: Any
) -> None:
    body = {
        "apiVersion": "reserver.io/v1alpha1",
        "kind": "ReservationQuota",
        "metadata": {"name": name},
        "spec": spec,
    }
    path = f"{GROUP}/namespaces/{namespace}/reservationquotas"
    await world.cluster.client.send("POST", path, body)


async def change(world: World, path: str, spec: Any) -> None:
    await world.cluster.client.send("PATCH", f"{GROUP}/{path}", {"spec": spec}, media=MERGE)


async def get(world: World, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await world.cluster.client.send("GET", f"{GROUP}/{path}"))
    return found


async def backed(world: World, name: str, namespace: str = "shop") -> dict[str, Any]:
    """Return phase and condition Backed of a Reservation, once it has them."""

    async def condition() -> dict[str, Any]:
        found = await get(world, f"namespaces/{namespace}/reservations/{name}")
        said = found.get("status", {})
        backed = (each for each in said.get("conditions", ()) if each["type"] == "Backed")
        return next(({"phase": said["phase"], **each} for each in backed), {})

    return await until_answered(condition)


async def told(world: World, name: str, reason: str) -> dict[str, Any]:
    async def said() -> dict[str, Any]:
        found = await backed(world, name)
        return found if found["reason"] == reason else {}

    return await until_answered(said)


async def exceeding(world: World, name: str, *, wanted: bool) -> None:
    """Wait until a Reservation says, or not any more, that it holds and exceeds a limit."""
    path = f"namespaces/shop/reservations/{name}"

    async def is_so() -> bool:
        conditions = (await get(world, path))["status"]["conditions"]
        return any(each["reason"] == "ExceedsQuota" for each in conditions) is wanted

    await until_answered(is_so)


async def used(world: World, wanted: dict[str, str], name: str = "team-quota") -> None:
    async def is_so() -> bool:
        found = await get(world, f"namespaces/shop/reservationquotas/{name}")
        return bool(found.get("status", {}).get("used") == wanted)

    await until_answered(is_so)


def held(assembly: Assembly, node: str = "worker-1") -> int:
    return assembly.ledger.held_on(node).get("cpu", 0)


ATTACKS: dict[str, list[dict[str, Any]]] = {
    "the finding": [
        {"node": f"worker-{number}", "resources": {"cpu": 1000}, "slots": 1000, "ttl": "0"}
        for number in (1, 2)
    ],
    "for ever": [{"resources": {"cpu": 4}, "ttl": "0"}],
    "many small ones": [{"resources": {"cpu": "100m"}, "slots": 1} for _ in range(110)],
    "placed by Reserver": [{"node": None, "resources": {"cpu": 4}, "slots": 3}],
    "a resource that is not named": [{"resources": {"nvidia.com/gpu": 1}}],
    "all the node's pods": [{"resources": {"pods": 110}}],
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_out_of_the_box_a_team_cannot_hold_the_cluster(world: World, attack: str) -> None:
    for number, spec in enumerate(ATTACKS[attack]):
        await write(world, f"greedy-{number}", **spec)
    last = len(ATTACKS[attack]) - 1
    said = await backed(world, f"greedy-{last}")
    assert (said["phase"], said["status"], said["reason"]) == ("Pending", "False", "QuotaExceeded")
    assert "exceeded quota: default, requested: " in said["message"]
    for node in ("worker-1", "worker-2"):
        assert world.running.assembly.ledger.held_on(node).get("nvidia.com/gpu", 0) == 0
        assert held(world.running.assembly, node) <= 8000
        assert world.running.assembly.ledger.held_on(node).get("pods", 0) <= 100


async def test_who_waits_comes_in_when_the_quota_is_raised_and_the_quota_says_what_is_used(
    world: World,
) -> None:
    await limit(world, hard={"held.cpu": "3", "reservations": 5})
    await until(
        lambda: bool(world.running.assembly.ledger.quotas.of("shop")[0].name == "team-quota")
    )
    await write(world, "a", resources={"cpu": 2})
    await told(world, "a", "RoomHeld")
    await write(world, "b", resources={"cpu": "1500m"})
    said = await told(world, "b", "QuotaExceeded")
    assert said["message"] == (
        "exceeded quota: team-quota, requested: held.cpu=1500m, used: held.cpu=2, limited: "
        "held.cpu=3; it holds once there is room in the quota"
    )
    await used(world, {"held.cpu": "2", "reservations": "1"})
    await change(world, "namespaces/shop/reservationquotas/team-quota", {"hard": {"held.cpu": "4"}})
    await told(world, "b", "RoomHeld")
    await used(world, {"held.cpu": "3500m", "reservations": "2"})
    quota = await get(world, "namespaces/shop/reservationquotas/team-quota")
    assert quota["status"]["hard"] == {"held.cpu": "4", "reservations": "5"}
    assert quota["metadata"]["generation"] == 2
    hard = {"held.cpu": "3", "reservations": None, "held.pods": 7}
    await change(world, "namespaces/shop/reservationquotas/team-quota", {"hard": hard})
    await exceeding(world, "b", wanted=True)
    await used(world, {"held.cpu": "3500m", "held.pods": "2"})
    await write(world, "c", resources={"cpu": "100m"})
    await told(world, "c", "QuotaExceeded")
    path = f"{GROUP}/namespaces/shop/reservationquotas/team-quota"
    await world.cluster.client.send("DELETE", path)
    await told(world, "c", "RoomHeld")
    await exceeding(world, "b", wanted=False)
    assert (await backed(world, "b"))["reason"] == "RoomHeld"


async def test_a_start_lets_the_same_hold_whatever_they_are_called(
    world: World, tmp_path: Path
) -> None:
    await limit(world, hard={"held.cpu": "2"})
    await until(lambda: world.running.assembly.ledger.quotas.of("shop")[0].name == "team-quota")
    for name in ("z", "y", "a"):
        await write(world, name, resources={"cpu": 1})
        await backed(world, name)
    await told(world, "a", "QuotaExceeded")
    settings = Settings(kubeconfig=tmp_path / "kubeconfig", http_port=0)
    async with app.running(settings) as again:
        await until(lambda: again.assembly.is_ready)
        holding = {r.ref.key for r in again.assembly.ledger.holding_on("worker-1")}
        assert holding == {"z", "y"}
        path = f"{GROUP}/namespaces/shop/reservations/z"
        await world.cluster.client.send("DELETE", path)
        await until(
            lambda: {r.ref.key for r in again.assembly.ledger.holding_on("worker-1")} == {"y", "a"}
        )


async def test_a_namespace_that_is_written_anew_begins_with_nothing_used(world: World) -> None:
    await write(world, "a", resources={"cpu": 4}, node="worker-1")
    await write(world, "b", resources={"cpu": 4}, node="worker-2")
    await told(world, "b", "RoomHeld")
    await write(world, "c", resources={"cpu": 1})
    await told(world, "c", "QuotaExceeded")
    await world.cluster.client.send("DELETE", "/api/v1/namespaces/shop")
    await until(lambda: len(world.running.assembly.ledger) == 0)

    shop = {"metadata": {"name": "shop"}}

    async def is_made() -> bool:
        with suppress(ApiError):  # It is still going.
            await world.cluster.client.send("POST", "/api/v1/namespaces", shop)
            return True
        return False

    await until_answered(is_made)
    await write(world, "c", resources={"cpu": 8})
    assert (await backed(world, "c"))["reason"] != "QuotaExceeded"


async def test_a_quota_that_cannot_be_read_limits_nothing_and_says_so(world: World) -> None:
    await limit(world, hard={"cpu": "3"})

    async def is_told() -> bool:
        raw = await world.cluster.client.send("GET", "/api/v1/namespaces/shop/events")
        return any("spec.hard.cpu" in each["message"] for each in json.loads(raw)["items"])

    await until_answered(is_told)
    assert world.running.assembly.ledger.quotas.of("shop")[0].name == "default"


async def test_a_configmap_elsewhere_is_limited_by_a_quota_there_and_by_no_default(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as world:
        spec = "owners: [{pod: {name: a}}]\nnode: worker-1\nresources: {cpu: 9}\nttl: 1h\n"
        for configmap in ("first", "second"):
            body = {"metadata": {"name": configmap}, "data": {f"{configmap}.r": spec}}
            await world.cluster.client.send("POST", "/api/v1/namespaces/shop/configmaps", body)
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig",
            http_port=0,
            configmaps=(("shop", "first"), ("shop", "second")),
        )
        async with app.running(settings) as reserver:
            await until(lambda: reserver.assembly.is_ready)
            assert held(reserver.assembly) == 18_000
            await limit(world, hard={"held.cpu": "10"})
            await until(lambda: bool(reserver.assembly.ledger.quotas.of("shop")))
            data = {"data": {"second.s": spec}}
            path = "/api/v1/namespaces/shop/configmaps/second"
            await world.cluster.client.send("PATCH", path, data, media=MERGE)

            async def statuses() -> dict[str, Any]:
                with suppress(ApiError, KeyError):  # It is written half a second after.
                    found = json.loads(await world.cluster.client.send("GET", f"{path}-status"))
                    said = {key: json.loads(text) for key, text in found["data"].items()}
                    return said if said["second.s"].get("reason") == "QuotaExceeded" else {}
                return {}

            found = await until_answered(statuses)
            assert held(reserver.assembly) == 18_000
            kept, said = found["second.r"], found["second.s"]
            assert kept["exceeds"].startswith("exceeded quota: team-quota")
            assert (said["phase"], said["backed"]) == ("Pending", False)
            assert "exceeded quota: team-quota, requested: held.cpu=9" in said["message"]
        async with app.running(settings) as reserver:
            await until(lambda: reserver.assembly.is_ready)
            assert {r.ref.key for r in reserver.assembly.ledger.holding_on("worker-1")} == {
                "first.r",
                "second.r",
            }


async def test_home_has_no_quota_unless_one_is_given(world: World) -> None:
    await write(world, "big", SYSTEM, resources={"cpu": 100}, ttl="0")
    assert (await backed(world, "big", SYSTEM))["phase"] == "Active"
    await limit(world, namespace=SYSTEM, hard={"held.cpu": 99})
    await until(lambda: bool(world.running.assembly.ledger.quotas.of(SYSTEM)))
    await write(world, "more", SYSTEM, resources={"cpu": 1}, ttl="0")
    assert (await backed(world, "more", SYSTEM))["reason"] == "QuotaExceeded"
    assert held(world.running.assembly) == 100_000


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


async def test_a_team_sees_what_it_may_hold_what_it_holds_and_why_one_waits(world: World) -> None:
    await limit(world, hard={"held.cpu": "3", "held.pods": 10, "held.*": 0}, maxTTL="48h")
    await limit(world, "few", hard={"reservations": 5}, namespace=SYSTEM, firmHolds="Forbidden")
    await until(lambda: bool(world.running.assembly.ledger.quotas.of(SYSTEM)))
    await until(lambda: world.running.assembly.ledger.quotas.of("shop")[0].name == "team-quota")
    for name, cpu in (("a", 2), ("b", 2), ("c", 4)):
        await write(world, name, resources={"cpu": cpu})
        await backed(world, name)
    await told(world, "c", "QuotaExceeded")
    dept = {"metadata": {"name": "dept"}}
    await world.cluster.client.send("POST", "/api/v1/namespaces", dept)
    await write(world, "d", "dept", resources={"cpu": 1})
    await backed(world, "d", "dept")

    rows = [line.split() for line in (await run(world, "top", "quotas")).splitlines()]
    assert rows[0] == ["NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD"]
    assert ["dept", "default", "held.cpu", "1", "8"] in rows
    assert [row for row in rows if row[0] == SYSTEM] == [
        [SYSTEM, "few", "reservations", "0", "5"],
        [SYSTEM, "few", "firmHolds", "-", "Forbidden"],
    ]
    assert [row for row in rows if row[0] == "shop"] == [
        ["shop", "team-quota", "held.*", "-", "0"],
        ["shop", "team-quota", "held.cpu", "2", "3"],
        ["shop", "team-quota", "held.pods", "1", "10"],
        ["shop", "team-quota", "reservations", "2", "pending", "-"],
        ["shop", "team-quota", "maxTTL", "-", "48h"],
    ]
    said = json.loads(await run(world, "top", "quotas", "-n", "shop", "-o", "json"))
    assert said == {
        "quotas": [
            {
                "namespace": "shop",
                "name": "team-quota",
                "hard": {"held.*": "0", "held.cpu": "3", "held.pods": "10"},
                "used": {"held.cpu": "2", "held.pods": "1"},
                "pending": 2,
                "maxTTL": "48h",
            }
        ]
    }
    nobody = json.loads(await run(world, "top", "quotas", "-n", "nobody", "-o", "json"))
    assert [quota["name"] for quota in nobody["quotas"]] == ["default"]

    listed = (await run(world, "get", "-n", "shop")).splitlines()
    assert [line.split()[:4] for line in listed if line.startswith("b ")] == [
        ["b", "Pending,", "over", "quota"]
    ]
    why = (
        "exceeded quota: team-quota, requested: held.cpu=2, used: held.cpu=2, limited: held.cpu=3; "
        "it holds once there is room in the quota"
    )
    assert f"Because:        {why}\n" in await run(world, "describe", "shop/b")
    status = json.loads(await run(world, "get", "shop/c", "-o", "json"))["status"]
    assert (status["phase"], status["reason"]) == ("Pending", "QuotaExceeded")
    assert status["message"].endswith("; ask for less, or have the quota raised")

    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    waiting = {"metadata": {"name": "b"}, "spec": {"containers": [container]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", waiting)
    await until(lambda: PodName("shop", "b") in world.running.assembly.state.pods)
    lines = (await run(world, "explain", "pod", "shop/b")).splitlines()
    heading = next(at for at, line in enumerate(lines) if line.startswith("NOT HELD FOR IT YET"))
    assert lines[heading + 1].split(maxsplit=1) == ["shop/b", why]
    explained = json.loads(await run(world, "explain", "pod", "shop/b", "-o", "json"))
    assert explained["pending"] == [
        {"reservation": "shop/b", "reason": "QuotaExceeded", "message": why}
    ]


async def run(world: World, *arguments: str) -> str:
    """Return what the command line prints."""
    environment = {"RESERVER_ADDRESS": world.running.grpc_address}
    done = await asyncio.to_thread(CliRunner().invoke, cli, arguments, env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout


def spec(cpu: str) -> pb.ReservationSpec:
    owner = pb.Owner(pod=pb.PodOwner(name="web-0", namespace="shop"))
    return pb.ReservationSpec(owners=[owner], node="worker-1", resources={"cpu": cpu})


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value
