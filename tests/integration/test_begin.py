"""The work of Reserver before it is ready, and after that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reserver import app
from reserver.settings.serve import Settings
from reserver.stores.history import HistoryReader
from reserver_demo.cluster import EmbeddedCluster
from tests.integration.world import CONFIGMAPS, SYSTEM
from tests.waiting import until_answered

SPEC = {
    "owners": [{"pod": {"name": "web-0", "namespace": "shop"}}],
    "node": "worker-1",
    "resources": {"cpu": "1"},
}
STORE = {
    "metadata": {"name": "reservations", "labels": {"reserver.io/store": "true"}},
    "data": {
        "held": json.dumps({**SPEC, "ttl": 0}),
        "over": json.dumps({**SPEC, "expiresAt": "2020-01-01T00:00:00Z"}),
        "broken": "{}",
    },
}
BEGUN = {"reservations": {"held", "over", "broken"}}


async def test_until_it_is_ready_it_only_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with EmbeddedCluster() as cluster:
        await cluster.create_node("worker-1")
        await cluster.client.send("POST", "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
        await cluster.client.send("POST", CONFIGMAPS, STORE)
        cluster.write_kubeconfig(tmp_path / "kubeconfig")

        async def stores() -> dict[str, set[str]]:
            items = json.loads(await cluster.client.send("GET", CONFIGMAPS))["items"]
            return {item["metadata"]["name"]: set(item.get("data") or ()) for item in items}

        async def events() -> int:
            path = f"/api/v1/namespaces/{SYSTEM}/events"
            return len(json.loads(await cluster.client.send("GET", path))["items"])

        before = []

        async def read(_: HistoryReader) -> None:
            before.append((await stores(), await events()))

        monkeypatch.setattr(HistoryReader, "read", read)
        settings = Settings(kubeconfig=tmp_path / "kubeconfig", http_port=0)

        async def has_begun() -> bool:
            return await stores() != BEGUN and await events() > 0

        async with app.running(settings):
            await until_answered(has_begun)
    assert before == [(BEGUN, 0)]
