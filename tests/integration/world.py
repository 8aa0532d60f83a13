"""An embedded cluster, reserver on it, and a channel to its gRPC API."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from reserver import app
from reserver.reservations.enums import StoreKind
from reserver.settings.serve import Settings
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub
from reserver_demo.cluster import EmbeddedCluster
from tests.waiting import until

SYSTEM = "reserver-system"
CONFIGMAPS = f"/api/v1/namespaces/{SYSTEM}/configmaps"
OBJECTS = f"/apis/reserver.io/v1alpha1/namespaces/{SYSTEM}/reservations"


class World:
    """A cluster, reserver on it and a client of its API."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        running: app.Running,
        channel: Any,
        store: StoreKind,
    ) -> None:
        self.cluster = cluster
        self.running = running
        self.channel = channel
        self.api = ReservationServiceStub(channel)
        self.writes_objects = store is StoreKind.OBJECT

    def id_of(self, name: str) -> str:
        """Return the id of the reservation that was created under a name."""
        return f"{SYSTEM}/{name}" if self.writes_objects else f"{SYSTEM}/reservations/{name}"

    async def data(self, configmap: str = "reservations") -> dict[str, str]:
        found = json.loads(await self.cluster.client.send("GET", f"{CONFIGMAPS}/{configmap}"))
        return dict(found.get("data") or {})

    async def objects(self) -> dict[str, Any]:
        items = json.loads(await self.cluster.client.send("GET", OBJECTS))["items"]
        return {item["metadata"]["name"]: item for item in items}

    async def written(self) -> dict[str, str]:
        """Return the entries of the store by name: a data key's value, or an object's spec."""
        if not self.writes_objects:
            return await self.data()
        return {name: json.dumps(item["spec"]) for name, item in (await self.objects()).items()}


@contextlib.asynccontextmanager
async def serving(
    tmp_path: Path,
    *nodes: str,
    store: StoreKind = StoreKind.CONFIGMAP,
    pod_moves: bool = False,
    cluster: EmbeddedCluster | None = None,
) -> AsyncIterator[World]:
    """Serve on a cluster of its own, or on one that was made by `serving`."""
    async with contextlib.AsyncExitStack() as stack:
        if cluster is None:
            cluster = await stack.enter_async_context(EmbeddedCluster())
            for node in nodes or ("worker-1", "worker-2"):
                await cluster.create_node(node)
            for namespace in (SYSTEM, "shop"):
                await cluster.client.send(
                    "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}
                )
            cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig",
            http_port=0,
            grpc_address=("127.0.0.1", 0),
            reservation_store=store,
            pod_moves=pod_moves,
            tenant_ceiling_cluster="none",  # Tests hold the whole of few small nodes.
        )
        async with app.running(settings) as running:
            assert running.grpc_address
            async with grpc.aio.insecure_channel(running.grpc_address) as channel:
                stub = health_pb2_grpc.HealthStub(channel)
                async for answer in stub.Watch(health_pb2.HealthCheckRequest()):
                    if answer.status == health_pb2.HealthCheckResponse.SERVING:
                        break
                yield World(cluster, running, channel, store)


@contextlib.asynccontextmanager
async def again(tmp_path: Path, store: StoreKind = StoreKind.CONFIGMAP) -> AsyncIterator[Any]:
    """Start a further reserver on the same cluster, and yield a stub of its API."""
    settings = Settings(
        kubeconfig=tmp_path / "kubeconfig",
        http_port=0,
        grpc_address=("127.0.0.1", 0),
        reservation_store=store,
    )
    async with app.running(settings) as running:
        await until(lambda: running.assembly.is_ready)
        assert running.grpc_address
        async with grpc.aio.insecure_channel(running.grpc_address) as channel:
            yield ReservationServiceStub(channel)
