"""The embedded cluster: starts and stops API server, controllers and kubelets together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from reserver_demo.apiserver.registry import Registry
from reserver_demo.apiserver.server import serve
from reserver_demo.apiserver.status import Json
from reserver_demo.apiserver.store import Store
from reserver_demo.client import ApiClient, Endpoint
from reserver_demo.clock import Clock, SystemClock, rfc3339
from reserver_demo.controllers.loop import Controllers
from reserver_demo.kubelet import Kubelet


class EmbeddedCluster:
    """A cluster in this process, on loopback, during an `async with` block.

    Its parts run in one TaskGroup in a separate task, so that the block may be entered and left in
    different tasks, as test fixtures do.

    Args:
        history: the least number of changes of each resource that watches can go back.
        clock: the clock of the cluster.
    """

    def __init__(self, history: int = 10_000, clock: Clock | None = None) -> None:
        self._history = history
        self._clock = clock or SystemClock()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._started: tuple[str, ApiClient] | None = None

    @property
    def url(self) -> str:
        """The API server's base URL."""
        return self._parts()[0]

    @property
    def client(self) -> ApiClient:
        """A client of the API server."""
        return self._parts()[1]

    def _parts(self) -> tuple[str, ApiClient]:
        if self._started is None:
            raise RuntimeError("the embedded cluster does not run")
        return self._started

    async def __aenter__(self) -> Self:
        """Start the cluster; the API server answers when this returns."""
        started = asyncio.Event()
        self._running = asyncio.create_task(self._run(started))
        # A failed start ends the task, and must end the wait below.
        self._running.add_done_callback(lambda _: started.set())
        await started.wait()
        if self._running.done():
            await self._running
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the cluster; raise the exception of a failed part."""
        self._stop.set()
        if self._running is not None:
            await self._running

    async def _run(self, started: asyncio.Event) -> None:
        store = Store(self._history)
        async with (
            serve(store, self._clock) as url,
            aiohttp.ClientSession() as session,
            asyncio.TaskGroup() as tasks,
        ):
            client = ApiClient(session, Endpoint(url))
            controllers = Controllers(Registry(store, self._clock))
            parts = [
                tasks.create_task(Kubelet(client, self._clock).run()),
                tasks.create_task(controllers.run()),
            ]
            self._started = (url, client)
            started.set()
            await self._stop.wait()
            self._started = None
            for part in parts:
                part.cancel()

    def write_kubeconfig(self, path: Path, server: str = "") -> None:
        """Write a kubeconfig; `server` is the address of a proxy, or empty."""
        cluster = {"name": "sim", "cluster": {"server": server or self.url}}
        context = {"name": "sim", "context": {"cluster": "sim", "user": "sim"}}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "users": [{"name": "sim", "user": {}}],
            "contexts": [context],
            "current-context": "sim",
        }
        path.write_text(json.dumps(config, indent=2))

    async def create_node(
        self,
        name: str,
        resources: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Create a ready node.

        Args:
            name: the name of the node.
            resources: quantities that extend or replace 4 cpu, 16Gi of memory and 110 pods.
            labels: labels in addition to `kubernetes.io/hostname`.

        Raises:
            ApiError: the API server refused the node.
        """
        body = ready_node(name, resources or {}, labels or {}, rfc3339(self._clock.now()))
        await self.client.send("POST", "/api/v1/nodes", body)


def ready_node(
    name: str, resources: Mapping[str, str], labels: Mapping[str, str], now: str
) -> Json:
    """Return a ready node, in the form that a kubelet registers."""
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110", **resources}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
    }
