"""The memory of a reservation in both stores, in bytes that stay allocated."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Callable

import pytest

from tests.unit.whole import NODE_PATH, OBJECTS, STORES, Whole

COUNT, NODES = 500, 100

MOST_BYTES = 3_300
"""2,400 in a ConfigMap and 3,000 as an object with Python 3.11, where some dicts are half empty."""


def written(number: int) -> dict[str, object]:
    return {
        "owners": [{"pod": {"name": f"batch-{number:06}"}}],
        "node": f"ip-10-20-{number % NODES:05}.eu-central-1.compute.internal",
        "resources": {"cpu": "50m"},
        "expiresAt": "2031-01-01T00:00:00Z",
    }


def in_a_configmap(whole: Whole, first: int) -> None:
    data = {f"r-{n:06}": json.dumps(written(n)) for n in range(first, first + COUNT)}
    whole.show(STORES, f"bulk-{first}", "reserver-system", data=data)


def as_objects(whole: Whole, first: int) -> None:
    for n in range(first, first + COUNT):
        whole.show(OBJECTS, f"r-{n:06}", "reserver-system", spec=written(n), status={})


@pytest.mark.parametrize("write", [in_a_configmap, as_objects])
async def test_a_reservation_takes_few_kilobytes(write: Callable[[Whole, int], None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        whole = Whole(tasks)
        for n in range(NODES):
            name = f"ip-10-20-{n:05}.eu-central-1.compute.internal"
            whole.show(NODE_PATH, name, "", status={"allocatable": {"cpu": "32", "pods": "110"}})
        write(whole, 0)
        await whole.work()
        gc.collect()
        tracemalloc.start()
        write(whole, COUNT)
        await whole.work()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(whole.state.ledger) == 2 * COUNT
    assert taken / COUNT < MOST_BYTES
