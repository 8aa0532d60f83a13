"""A port-forward of our own, against an API server that speaks the protocol of the kubelet."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from reserver.errors import ApiError, NotReady
from reserver.k8s import credentials
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.portforward import Tunnel
from reserver.k8s.serving_pod import ServingPod, serving_pod
from reserver_demo.cluster import EmbeddedCluster

PODS = "/api/v1/namespaces/ns/pods"
PORT = struct.pack("<H", 9443)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Send back what comes, in pieces, as a pod would that listens."""
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(bytes((channel,)) + PORT)
    async for message in socket:
        assert message.data[0] == 0
        for start in range(1, len(message.data), 1000):
            await socket.send_bytes(b"\x00" + message.data[start : start + 1000])
    return socket


async def nobody(request: web.Request) -> web.WebSocketResponse:
    """Say that nothing listens."""
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(bytes((channel,)) + PORT)
    await socket.send_bytes(b"\x01connection refused")
    return socket


async def forbidden(_: web.Request) -> web.Response:
    return web.json_response({"kind": "Status", "message": "no"}, status=403)


@asynccontextmanager
async def api_server(
    handler: Handler, folder: Path, path: str = "/api/v1/namespaces/ns/pods/p/portforward"
) -> AsyncIterator[ApiClient]:
    application = web.Application()
    application.router.add_get(path, handler)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    cluster = f'{{"name": "c", "cluster": {{"server": "{site.name}"}}}}'
    context = '{"name": "c", "context": {"cluster": "c", "user": "u"}}'
    (folder / "kubeconfig").write_text(
        f'{{"clusters": [{cluster}], "contexts": [{context}], "current-context": "c",'
        ' "users": [{"name": "u", "user": {"token": "t"}}]}'
    )
    try:
        async with ApiClient(await credentials.load(folder / "kubeconfig")) as client:
            yield client
    finally:
        await runner.cleanup()


async def found() -> ServingPod:
    return ServingPod("ns/p", 9443)


async def test_bytes_come_back_as_they_were_sent_on_each_connection(tmp_path: Path) -> None:
    sent = bytes(range(256)) * 2000
    async with api_server(echo, tmp_path) as client, Tunnel(client, found).open() as tunnel:
        for _ in range(2):
            path = tunnel.address.removeprefix("unix:")
            assert oct(Path(path).parent.stat().st_mode)[-3:] == "700"
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(sent)
            assert await reader.readexactly(len(sent)) == sent
            writer.close()
    assert tunnel.problem == ""


async def test_why_nothing_listens_is_kept(tmp_path: Path) -> None:
    async with api_server(nobody, tmp_path) as client, Tunnel(client, found).open() as tunnel:
        reader, writer = await asyncio.open_unix_connection(tunnel.address.removeprefix("unix:"))
        assert await reader.read() == b""
        assert tunnel.problem == "connection refused"
        writer.close()


async def test_a_refusal_is_told_at_once(tmp_path: Path) -> None:
    async with api_server(forbidden, tmp_path) as client:
        with pytest.raises(ApiError, match="403 Forbidden"):
            async with Tunnel(client, found).open():
                pass


async def test_the_pod_that_is_ready_is_asked(tmp_path: Path) -> None:
    async with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        send = cluster.client.send
        await send("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})

        async def add(name: str, *, is_ready: bool, port: int | None = None) -> None:
            ports = [{"name": "grpc", "containerPort": port}] if port else []
            labels = {"app.kubernetes.io/name": "reserver"}
            spec = {"containers": [{"name": "c", "image": "i", "ports": ports}]}
            pod = {"metadata": {"name": name, "labels": labels}, "spec": spec}
            await send("POST", PODS, pod)
            conditions = [{"type": "Ready", "status": str(is_ready)}]
            status = {"status": {"conditions": conditions}}
            await send("PATCH", f"{PODS}/{name}/status", status, media=MERGE_PATCH)

        async with ApiClient(await credentials.load(tmp_path / "kubeconfig")) as client:
            with pytest.raises(NotReady, match="no such pod"):
                await serving_pod(client, "ns")
            await add("a", is_ready=False)
            with pytest.raises(NotReady, match="none of 1 is ready"):
                await serving_pod(client, "ns")
            await add("c", is_ready=True)
            assert await serving_pod(client, "ns") == ServingPod("ns/c", 9443)
            await add("b", is_ready=True, port=7)
            assert await serving_pod(client, "ns") == ServingPod("ns/b", 7)


def pod(name: str, *, is_ready: bool) -> dict[str, object]:
    conditions = [{"type": "Ready", "status": str(is_ready)}]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


@asynccontextmanager
async def listing(
    folder: Path, home: list[dict[str, object]], static: list[dict[str, object]] | None
) -> AsyncIterator[ApiClient]:
    """An API server with Reserver's pods in both namespaces; None: the caller may not list."""

    async def listed(request: web.Request) -> web.Response:
        assert request.query["labelSelector"] == "app.kubernetes.io/name=reserver"
        items = home if request.match_info["namespace"] == "ns" else static
        return await forbidden(request) if items is None else web.json_response({"items": items})

    async with api_server(listed, folder, "/api/v1/namespaces/{namespace}/pods") as client:
        yield client


async def test_a_static_pod_is_asked_where_the_namespace_has_none(tmp_path: Path) -> None:
    static = [pod("kube-scheduler-b", is_ready=False), pod("kube-scheduler-c", is_ready=True)]
    async with listing(tmp_path, [], static) as client:
        expected = ServingPod("kube-system/kube-scheduler-c", 9443)
        assert await serving_pod(client, "ns") == expected
    async with listing(tmp_path, [pod("a", is_ready=True)], static) as client:
        assert await serving_pod(client, "ns") == ServingPod("ns/a", 9443)
    async with listing(tmp_path, [], static[:1]) as client:
        with pytest.raises(NotReady, match="in namespace kube-system: none of 1 is ready"):
            await serving_pod(client, "ns")


async def test_who_may_not_list_static_pods_is_told_of_the_namespace(tmp_path: Path) -> None:
    async with listing(tmp_path, [], None) as client:
        with pytest.raises(NotReady, match="in namespace ns: no such pod"):
            await serving_pod(client, "ns")
