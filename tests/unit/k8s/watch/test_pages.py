"""A page of a list takes so many bytes at most, however large the objects are."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.watch import collection
from reserver.k8s.watch.collection import PAGE, Pages

KIB = 2**10


class Lists(ApiClient):
    """An API server with objects of these sizes, in bytes; records the limit of each page."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.limits: list[int] = []

    async def get_bounded(
        self, path: str, most_bytes: int, params: Mapping[str, str] | None = None
    ) -> bytes:
        assert (path, params and params["labelSelector"]) == ("/api/v1/pods", "a=b")
        params = params or {}
        self.limits.append(int(params["limit"]))
        start = int(params.get("continue", 0))
        end = start + self.limits[-1]
        items = [{"x": "x" * size} for size in self.sizes[start:end]]
        metadata = {"continue": str(end)} if end < len(self.sizes) else {}
        raw = json.dumps({"kind": "List", "metadata": metadata, "items": items}).encode()
        if len(raw) > most_bytes:
            raise ApiError(0, "TooLarge", "too long")
        return raw


async def listed(client: Lists) -> int:
    """Return the number of objects on all pages."""
    count, asked, token = 0, Pages(client, "/api/v1/pods"), ""
    while True:
        on = {"continue": token} if token else {}
        page = await asked.page({"labelSelector": "a=b", **on})
        count, token = count + len(page.items or ()), page.metadata.continue_
        if not token:
            return count


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "PAGE_BYTES", 64 * KIB)


async def test_small_objects_come_in_full_pages() -> None:
    client = Lists(*[10] * (2 * PAGE + 1))
    assert await listed(client) == 2 * PAGE + 1
    assert client.limits == [PAGE] * 3


async def test_large_objects_come_in_small_pages_and_few_are_asked_for_twice() -> None:
    client = Lists(*[10] * PAGE, *[3 * KIB] * 500, *[10] * (4 * PAGE))
    assert await listed(client) == 500 + 5 * PAGE
    assert max(client.limits[3:20]) < 22  # 64 KiB have room for so many.
    assert client.limits[-1] == PAGE
    assert len(client.limits) < 500 // 12 + 16


async def test_one_object_that_is_too_large_by_itself_is_an_error_and_not_a_loop() -> None:
    client = Lists(10, 65 * KIB, 10)
    with pytest.raises(ApiError, match="too long"):
        await listed(client)
    assert client.limits[-1] == 1
    assert len(client.limits) < 7
