"""The servers of the presses: `python -m hack.presses.stage FOLDER`, until its input ends.

An embedded cluster with Reserver, reached directly or through an API server that forwards ports,
and a server that does not answer.
"""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web

from hack.programs import started
from reserver import app
from reserver.k8s.client import MERGE_PATCH
from reserver.process import logs
from reserver.settings.serve import LogLevel, Settings
from reserver_demo.cluster import EmbeddedCluster

_SYSTEM = "reserver-system"
_PODS = f"/api/v1/namespaces/{_SYSTEM}/pods"
_DATA = b"\x00"
_MOST_BYTES = 2**22
_POLICY = "{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy, profiles: []}\n"


@dataclass(frozen=True)
class Stage:
    """The addresses and files of the servers.

    Attributes:
        address: the address of the gRPC API.
        kubeconfig: the kubeconfig of the API server that forwards ports.
        silent_address: an address where no server answers.
        silent_kubeconfig: the kubeconfig of an API server that does not answer.
        policy: a policy without strategies.
    """

    address: str
    kubeconfig: str
    silent_address: str
    silent_kubeconfig: str
    policy: str


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Run it in a process of its own."""
    command = [sys.executable, "-m", "hack.presses.stage", str(folder)]
    pipe = subprocess.PIPE
    with started(*command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout  # noqa: S101 - a pipe
        stage = Stage(**json.loads(process.stdout.readline()))
        _fill(stage)
        yield stage


def _fill(stage: Stage) -> None:
    """Create what commands are about."""
    for name in ("web-1", "kept"):
        words = ("create", name, "--node", "worker-1", "--owner", "pod/web-0", "--cpu", "100m")
        command = [sys.executable, "-m", "reserver", *words, "--address", stage.address]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class _Front:
    """An API server before another one, which forwards every port to one address."""

    def __init__(self, session: ClientSession, server: str, address: str) -> None:
        self._session, self._server = session, server
        self._host, _, self._port = address.rpartition(":")

    async def forward(self, request: web.Request) -> web.WebSocketResponse:
        """Carry one connection."""
        channel = web.WebSocketResponse(protocols=("v4.channel.k8s.io",), max_msg_size=0)
        await channel.prepare(request)
        port = struct.pack("<H", int(request.query["ports"]))
        for number in (0, 1):
            await channel.send_bytes(bytes((number,)) + port)
        reader, writer = await asyncio.open_connection(self._host, int(self._port))

        async def back() -> None:
            while some := await reader.read(65536):
                await channel.send_bytes(_DATA + some)
            await channel.close()

        backward = asyncio.create_task(back())
        try:
            async for message in channel:
                writer.write(message.data[1:])
        finally:
            backward.cancel()
            writer.close()
        return channel

    async def pass_on(self, request: web.Request) -> web.Response:
        """Ask the other API server."""
        media = request.headers.get("Content-Type", "application/json")
        async with self._session.request(
            request.method,
            f"{self._server}{request.rel_url}",
            data=await request.read(),
            headers={"Content-Type": media},
        ) as answer:
            body = await answer.read()
            return web.Response(body=body, status=answer.status, content_type=answer.content_type)


async def _mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(65536):
        pass
    writer.close()


async def _filled(cluster: EmbeddedCluster, address: str) -> None:
    """Make nodes, pods that wait, and the pod that connections are forwarded to."""
    send = cluster.client.send
    for node in ("worker-1", "worker-2"):
        await cluster.create_node(node)
    for namespace in (_SYSTEM, "shop"):
        await send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    port = {"name": "grpc", "containerPort": int(address.rpartition(":")[2])}
    reserver = _pod("reserver-0", {"app.kubernetes.io/name": "reserver"}, ports=[port])
    await send("POST", _PODS, reserver)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await send("PATCH", f"{_PODS}/reserver-0/status", ready, media=MERGE_PATCH)
    await send("POST", "/api/v1/namespaces/shop/pods", _pod("web-0", {"app": "web"}))


def _pod(name: str, labels: dict[str, str], **container: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i", **container}]},
    }


async def _run(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EmbeddedCluster())
        own = folder / "own"
        cluster.write_kubeconfig(own)
        settings = Settings(
            kubeconfig=own,
            http_port=0,
            grpc_address=("127.0.0.1", 0),
            pod_moves=True,
            tenant_ceiling_cluster="none",
        )
        running = await stack.enter_async_context(app.running(settings))
        address = str(running.grpc_address)
        await _filled(cluster, address)
        front = _Front(await stack.enter_async_context(ClientSession()), cluster.url, address)
        served = web.Application(client_max_size=_MOST_BYTES)
        served.router.add_get(f"{_PODS}/reserver-0/portforward", front.forward)
        served.router.add_route("*", "/{path:.*}", front.pass_on)
        runner = web.AppRunner(served, shutdown_timeout=0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        mute = await asyncio.start_server(_mute, "127.0.0.1", 0)
        silent = "{}:{}".format(*mute.sockets[0].getsockname()[:2])
        for name, server in (("kubeconfig", site.name), ("silent", f"http://{silent}")):
            cluster.write_kubeconfig(folder / name, server)
        policy = folder / "policy.yaml"
        policy.write_text(_POLICY)
        kubeconfigs = str(folder / "kubeconfig"), str(folder / "silent")
        told = Stage(address, kubeconfigs[0], silent, kubeconfigs[1], str(policy))
        print(json.dumps(asdict(told)), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    logs.configure(LogLevel.ERROR)
    asyncio.run(_run(Path(sys.argv[1])))
