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
from reserver.config import Settings
from reserver.sim.cluster import ClusterOptions, EmbeddedCluster
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub

SYSTEM = "reserver-system"
CONFIGMAPS = f"/api/v1/namespaces/{SYSTEM}/configmaps"


class World:
    """A cluster, reserver on it and a client of its API."""

    def __init__(self, cluster: EmbeddedCluster, running: app.Running, channel: Any) -> None:
        self.cluster = cluster
        self.running = running
        self.channel = channel
        self.api = ReservationServiceStub(channel)

    async def data(self, configmap: str = "reservations") -> dict[str, str]:
        found = json.loads(await self.cluster.client.send("GET", f"{CONFIGMAPS}/{configmap}"))
        return dict(found.get("data") or {})


@contextlib.asynccontextmanager
async def serving(tmp_path: Path, *nodes: str) -> AsyncIterator[World]:
    async with EmbeddedCluster(ClusterOptions(scheduler=None)) as cluster:
        for node in nodes or ("worker-1", "worker-2"):
            await cluster.create_node(node)
        for namespace in (SYSTEM, "shop"):
            await cluster.client.send(
                "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}
            )
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig", http_port=0, grpc_address=("127.0.0.1", 0)
        )
        async with app.running(settings) as running:
            assert running.grpc_address
            async with grpc.aio.insecure_channel(running.grpc_address) as channel:
                stub = health_pb2_grpc.HealthStub(channel)
                async for answer in stub.Watch(health_pb2.HealthCheckRequest()):
                    if answer.status == health_pb2.HealthCheckResponse.SERVING:
                        break
                yield World(cluster, running, channel)
