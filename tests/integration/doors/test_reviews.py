"""While the API server does not answer reviews of tokens, pods are bound all the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from reserver import app
from reserver.k8s.reviewer import MOST_FAILURES
from reserver.settings.serve import Settings
from reserver.v1 import reservation_pb2 as pb
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub
from reserver_demo.cluster import EmbeddedCluster
from tests.integration.doors.api_server import RIGHTS, TOKENS, reviewing
from tests.waiting import until

CALLERS = 64
REVIEWS_AT_ONCE = 16
POD = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.mark.parametrize(("hanging", "who"), [(TOKENS, "junk"), (RIGHTS, "somebody")])
async def test_binds_are_answered_while_reviews_hang(
    tmp_path: Path, hanging: str, who: str
) -> None:
    happened: list[str] = []
    async with (
        EmbeddedCluster() as cluster,
        reviewing(cluster, tmp_path / "kubeconfig") as api,
        app.running(_settings(tmp_path)) as running,
        aiohttp.ClientSession() as kube_scheduler,
    ):
        await cluster.create_node("worker-1")
        await cluster.client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        made = json.loads(await cluster.client.send("POST", "/api/v1/namespaces/shop/pods", POD))
        state = running.assembly.state
        await until(lambda: running.assembly.is_ready and bool(state.pods))
        await until(lambda: state.snapshot.has_node("worker-1"))

        api.hanging = hanging
        assert running.grpc_address
        async with grpc.aio.insecure_channel(running.grpc_address) as channel:
            callers = [
                asyncio.create_task(_ask(channel, f"{who}-{number}", happened))
                for number in range(CALLERS)
            ]
            refused = CALLERS - MOST_FAILURES if hanging == TOKENS else 0
            await until(lambda: api.waiting == REVIEWS_AT_ONCE and len(happened) == refused)
            await _bind(kube_scheduler, running, made["metadata"]["uid"])
            happened.append("bound")
            assert api.waiting == REVIEWS_AT_ONCE  # None was answered, so no other was sent.
            api.hanging = ""
            api.answers.set()
            await asyncio.gather(*callers)
        found = json.loads(await cluster.client.send("GET", "/api/v1/namespaces/shop/pods/web"))
        assert found["spec"]["nodeName"] == "worker-1"
    # Of unknown tokens one peer may send so many: those beyond were refused before, unasked.
    before = happened[: happened.index("bound")]
    assert set(before) <= {"RESOURCE_EXHAUSTED"}
    after = happened[len(before) + 1 :]
    assert set(after) == {"UNAUTHENTICATED" if hanging == TOKENS else "NOT_FOUND"}
    assert len(after) > REVIEWS_AT_ONCE


async def _ask(channel: Any, token: str, happened: list[str]) -> None:
    """Call with a token, and append the code of the refusal."""
    get = ReservationServiceStub(channel).Get
    metadata = (("authorization", f"Bearer {token}"),)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get(pb.GetRequest(name="nothing"), metadata=metadata)
    happened.append(refused.value.code().name)


async def _bind(kube_scheduler: aiohttp.ClientSession, running: app.Running, uid: str) -> None:
    bind = {"PodName": "web", "PodNamespace": "shop", "PodUID": uid, "Node": "worker-1"}
    async with kube_scheduler.post(f"{running.url}/bind", json=bind) as answer:
        said = json.loads(await answer.read())
    assert not said.get("Error"), said


def _settings(folder: Path) -> Settings:
    return Settings(
        kubeconfig=folder / "kubeconfig",
        http_port=0,
        grpc_address=("127.0.0.1", 0),
        grpc_loopback_tokens=True,
    )
