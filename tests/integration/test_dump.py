"""The dump for a bug report: its contents, its size, and the secrets that it leaves out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from reserver import app
from reserver.client import Client
from reserver.process import debugging
from reserver.settings.serve import Settings
from reserver_demo.cluster import EmbeddedCluster
from tests.integration.test_files_entered import SPEC
from tests.integration.world import CONFIGMAPS, SYSTEM
from tests.turns import turns
from tests.waiting import until

SECRET = "hunter2"
PODS = "/api/v1/namespaces/shop/pods"


@pytest.fixture
async def settings(tmp_path: Path) -> AsyncIterator[Settings]:
    """Settings for a cluster whose users wrote a secret wherever they may write."""
    async with EmbeddedCluster() as cluster:
        await cluster.create_node("worker-1", labels={"note": SECRET})
        for name in (SYSTEM, "shop"):
            body = {"metadata": {"name": name, "labels": {"note": SECRET}}}
            await cluster.client.send("POST", "/api/v1/namespaces", body)
        notes = {"annotations": {"note": SECRET}, "labels": {"note": SECRET}}
        container = {
            "name": "main",
            "image": "none",
            "resources": {"requests": {"cpu": "1"}},
            "env": [{"name": "PASSWORD", "value": SECRET}],
            "args": [SECRET],
        }
        pod = {"metadata": {"name": "web-9", **notes}, "spec": {"containers": [container]}}
        await cluster.client.send("POST", PODS, pod)
        stores = {"a": {**SPEC, "description": SECRET, "author": SECRET}, "broken": SECRET}
        store = {
            "metadata": {
                "name": "reservations",
                "labels": {"reserver.io/store": "true"},
                "annotations": {"note": SECRET},
            },
            "data": {key: json.dumps(value) for key, value in stores.items()},
        }
        await cluster.client.send("POST", CONFIGMAPS, store)
        file = tmp_path / "kubeconfig"
        cluster.write_kubeconfig(file)
        config = yaml.safe_load(file.read_text())
        config["users"][0]["user"] = {"token": SECRET}
        file.write_text(yaml.safe_dump(config))
        yield Settings(kubeconfig=file, http_port=0, grpc_address=("127.0.0.1", 0))


async def dumped(settings: Settings, *, is_ready: bool = True) -> bytes:
    async with app.running(settings) as running, Client(running.grpc_address or "") as calls:
        await until(lambda: not is_ready or not running.assembly.readiness.obstacles())
        return await calls.capacity.dump()


async def test_it_says_how_the_process_is_and_no_secret(settings: Settings) -> None:
    text = await dumped(settings)
    assert SECRET.encode() not in text
    said = json.loads(text)
    assert said["settings"]["namespace"] == SYSTEM
    assert said["obstacles"] == []
    assert (said["nodes"], said["reservations"]) == (1, 1)
    assert said["someReservations"][0]["phase"] == "Active"
    assert {each["current"] for each in said["watches"]} == {True}
    assert said["queues"]["placer"] == 0
    assert "reserver_ready 1.0" in said["metrics"]
    assert said["versions"]["kube-reserver"]
    assert any("run" in name for name in said["tasks"])


async def test_it_answers_while_reserver_is_not_ready(settings: Settings) -> None:
    waiting = replace(settings, leader_elect=True)
    async with app.running(settings):  # Without a lease; the other one waits for nobody else.
        said = json.loads(await dumped(waiting, is_ready=False))
    assert said["obstacles"]
    assert "reserver_ready 0.0" in said["metrics"]


async def test_what_is_too_long_is_left_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = await dumped(settings)
    most = len(whole) - 1000
    monkeypatch.setattr(debugging, "MOST_BYTES", most)
    text = await dumped(settings)
    assert len(text) <= most
    assert json.loads(text)["metrics"] == "too long"


async def test_calls_that_share_the_metrics_do_not_end_in_one_iteration(settings: Settings) -> None:
    async with app.running(settings) as running, turns() as turn:
        exposed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        ends: list[int] = []

        async def call() -> None:
            await debugging.dump(settings, running.assembly, partial(asyncio.shield, exposed))
            ends.append(turn())

        async with asyncio.TaskGroup() as calls:
            for _ in range(5):
                calls.create_task(call())
            await asyncio.sleep(0)
            exposed.set_result(b"")
    assert len({*ends}) == len(ends)
