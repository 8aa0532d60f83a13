"""Commands show limits, use, and the reason why a reservation is pending."""

from __future__ import annotations

import asyncio
import json

from typer.testing import CliRunner

from reserver.cli.main import app as cli
from reserver.cluster.pod import PodName
from tests.integration.quota.objects import backed, limit, told, write
from tests.integration.world import SYSTEM, World
from tests.waiting import until


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

    await assert_top_shows_limits(world)
    await assert_pending_has_its_reason(world)
    await assert_explain_names_the_quota(world)


async def assert_top_shows_limits(world: World) -> None:
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


WHY = (
    "exceeded quota: team-quota, requested: held.cpu=2, used: held.cpu=2, limited: held.cpu=3; "
    "it holds once there is room in the quota"
)


async def assert_pending_has_its_reason(world: World) -> None:
    listed = (await run(world, "get", "-n", "shop")).splitlines()
    assert [line.split()[:4] for line in listed if line.startswith("b ")] == [
        ["b", "Pending,", "over", "quota"]
    ]
    assert f"Because:        {WHY}\n" in await run(world, "describe", "shop/b")
    status = json.loads(await run(world, "get", "shop/c", "-o", "json"))["status"]
    assert (status["phase"], status["reason"]) == ("Pending", "QuotaExceeded")
    assert status["message"].endswith("; ask for less, or have the quota raised")


async def assert_explain_names_the_quota(world: World) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    waiting = {"metadata": {"name": "b"}, "spec": {"containers": [container]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", waiting)
    await until(lambda: PodName("shop", "b") in world.running.assembly.state.pods)
    lines = (await run(world, "explain", "pod", "shop/b")).splitlines()
    heading = next(at for at, line in enumerate(lines) if line.startswith("NOT HELD FOR IT YET"))
    assert lines[heading + 1].split(maxsplit=1) == ["shop/b", WHY]
    explained = json.loads(await run(world, "explain", "pod", "shop/b", "-o", "json"))
    assert explained["pending"] == [
        {"reservation": "shop/b", "reason": "QuotaExceeded", "message": WHY}
    ]


async def run(world: World, *arguments: str) -> str:
    """Return the output of a command."""
    environment = {"RESERVER_ADDRESS": world.running.grpc_address}
    done = await asyncio.to_thread(CliRunner().invoke, cli, arguments, env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout
