"""Limits on Reservations and ConfigMaps: defaults, changes, restarts, deleted namespaces."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reserver import app
from reserver.errors import ApiError
from reserver.settings.serve import Settings
from tests.integration.quota.objects import (
    GROUP,
    MERGE,
    backed,
    change,
    exceeding,
    get,
    held,
    limit,
    told,
    used,
    write,
)
from tests.integration.world import SYSTEM, World, serving
from tests.waiting import until, until_answered

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
            holding = {r.ref.key for r in reserver.assembly.ledger.holding_on("worker-1")}
            assert holding == {"first.r", "second.r"}


async def test_home_has_no_quota_unless_one_is_given(world: World) -> None:
    await write(world, "big", SYSTEM, resources={"cpu": 100}, ttl="0")
    assert (await backed(world, "big", SYSTEM))["phase"] == "Active"
    await limit(world, namespace=SYSTEM, hard={"held.cpu": 99})
    await until(lambda: bool(world.running.assembly.ledger.quotas.of(SYSTEM)))
    await write(world, "more", SYSTEM, resources={"cpu": 1}, ttl="0")
    assert (await backed(world, "more", SYSTEM))["reason"] == "QuotaExceeded"
    assert held(world.running.assembly) == 100_000
