"""The accounts of a Reserver that serves: written where the next one finds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reserver.client import Client, PodOwner, Spec
from reserver.reservations.accounts import HoldUse
from reserver.stores import hold_accounts
from reserver.stores.hold_accounts import NAME
from tests.integration.world import CONFIGMAPS, World, serving
from tests.waiting import until, until_answered

SPEC = Spec(
    owners=[PodOwner(namespace="shop", name="web-0")], node="worker-1", resources={"cpu": "2"}
)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_accounts, "LOOK_EVERY_S", 0.02)


async def written(world: World) -> dict[str, Any]:
    """Return the account of the pod, once it is written."""

    async def account() -> dict[str, Any]:
        found = json.loads(await world.cluster.client.send("GET", CONFIGMAPS))
        for each in found["items"]:
            weeks = {k: v for k, v in (each.get("data") or {}).items() if k != "until"}
            if each["metadata"]["name"] == NAME and weeks:
                written: dict[str, Any] = json.loads(weeks[max(weeks)])["shop"]["pod/web-0"]
                return written
        return {}

    return await until_answered(account)


async def test_what_is_held_is_counted_written_and_found_by_the_next_process(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as world:
        assert world.running.grpc_address
        async with Client(world.running.grpc_address) as client:
            await client.create("move", SPEC)
            free, spare, used = (await written(world))["cpu"]
            assert free > 0
            assert (spare, used) == (0, 0)
            found = [each async for each in client.capacity.accounts("shop")]
            assert {each.resource for each in found} == {"cpu", "pods"}
            assert found[0].unused == found[0].held > 0
            metrics = world.running.assembly.accountant.held.seconds
            assert metrics["shop", "cpu"] == HoldUse(metrics["shop", "cpu"].free)
        async with serving(tmp_path, cluster=world.cluster) as second:
            held = second.running.assembly.accountant.held
            await until(lambda: held.seconds)
            counted = sum(uses["cpu"].free for _, uses in held.accounts)
            assert counted > held.seconds["shop", "cpu"].free / 3600 >= 0
