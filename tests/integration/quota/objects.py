"""Reservations and ReservationQuotas as tenants write and read them."""

from __future__ import annotations

import json
from typing import Any

from reserver.process.assembly import Assembly
from tests.integration.world import World
from tests.waiting import until_answered

GROUP = "/apis/reserver.io/v1alpha1"
MERGE = "application/merge-patch+json"


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
