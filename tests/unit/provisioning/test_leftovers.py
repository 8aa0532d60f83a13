"""Requests that are written and deleted without end leave nothing behind."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.unit.moves.api_server import SEATS
from tests.unit.provisioning.shop import POD_SETS, REQUESTS, Shop, asked
from tests.unit.provisioning.test_strikes import PROVISIONED
from tests.unit.reachable import sizes


@pytest.mark.long
async def test_requests_that_come_and_go_at_any_moment_leave_nothing() -> None:
    shop = Shop()
    await shop.start()

    async def rounds(number: int) -> None:
        for _ in range(number):
            await shop.round()
            shop.api.now += 1.0
            shop.time.now += 1.0

    async def churn() -> dict[str, int]:
        for number in range(15):
            shop.ask(validFor="1h")
            await rounds(number % 7)
            shop.api.remove(f"{REQUESTS}/job")
            await rounds(number % 3 == 0)
        await rounds(20)
        shop._collect_garbage()
        await rounds(10)
        assert shop.api.of(SEATS) == []
        assembly = shop.reserver
        return sizes((assembly.features.provisioner, assembly.state, *assembly.stores))

    await churn()
    before = await churn()
    after = await churn()
    assert {path: size for path, size in after.items() if size > before.get(path, 0)} == {}


async def test_what_a_newer_version_has_provisioned_is_held_and_released() -> None:
    shop = await asked(validFor="1h")
    await shop.settle()
    newer = deepcopy(shop.api.objects[f"{REQUESTS}/job"])
    newer["spec"]["parameters"]["brandNew"] = "x"
    shop.api.put(REQUESTS, newer)
    await shop.start()
    await shop.settle()
    assert shop.said == PROVISIONED
    assert len(shop.api.of(SEATS)) == len(POD_SETS)
    shop.api.remove(f"{REQUESTS}/job")
    for _ in range(3):
        await shop.round()
    assert shop.api.of(SEATS) == []  # No garbage collector has come round.
