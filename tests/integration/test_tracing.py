"""Traces, as a collector of OpenTelemetry gets them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from reserver import app
from reserver.cluster.pod import PodName
from reserver.moves.model import Move, MoveSpec, MoveStatus
from reserver.moves.phases import MovePhase, MoveReason
from reserver.process.tracing import Tracing
from reserver.settings.serve import Settings
from reserver.v1 import reservation_pb2
from reserver.v1.reservation_pb2_grpc import ReservationServiceStub
from reserver_demo.cluster import EmbeddedCluster
from tests.waiting import until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
POD = {
    "metadata": {"name": "web-0", "namespace": "shop", "uid": "1"},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {},
}
FILTER = {"Pod": POD, "NodeNames": ["worker-1", "worker-2"]}
BIND = {"PodName": "web-0", "PodNamespace": "shop", "PodUID": "1", "Node": "worker-1"}


class Collector(TraceServiceServicer):
    """A collector that keeps the received spans.

    Attributes:
        resource: attributes of the sender.
        spans: by name.
    """

    def __init__(self) -> None:
        self.resource: dict[str, Any] = {}
        self.spans: dict[str, Any] = {}

    async def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - as gRPC has it
        del context
        for of_resource in request.resource_spans:
            self.resource = attributes(of_resource.resource)
            for scope in of_resource.scope_spans:
                self.spans |= {span.name: span for span in scope.spans}
        return pb.ExportTraceServiceResponse()


def attributes(of: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


@pytest.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    """A collector that the standard variables name."""
    server, collector = grpc.aio.server(), Collector()
    add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=test")
    yield collector
    await server.stop(None)


async def test_decisions_bindings_and_grpc_calls_are_spans(
    tmp_path: Path, collector: Collector
) -> None:
    async with EmbeddedCluster() as cluster, aiohttp.ClientSession() as session:
        for node in ("worker-1", "worker-2"):
            await cluster.create_node(node)
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig",
            http_port=0,
            grpc_address=("127.0.0.1", 0),
            tracing=True,
        )
        async with (
            app.running(settings) as running,
            grpc.aio.insecure_channel(running.grpc_address or "") as channel,
        ):
            await until(lambda: not running.assembly.readiness.obstacles())
            for verb, body in (("filter", FILTER), ("bind", BIND)):
                async with session.post(f"{running.url}/{verb}", json=body) as answer:
                    assert answer.status == 200
            api: Any = ReservationServiceStub(channel)
            caller = (("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01"),)
            await api.List(reservation_pb2.ListRequest(), metadata=caller, wait_for_ready=True)
            with pytest.raises(grpc.aio.AioRpcError):
                await api.Get(reservation_pb2.GetRequest(name="none"))
    resource = collector.resource
    assert (resource["service.name"], resource["k8s.cluster.name"]) == ("reserver", "test")
    pod = {"k8s.namespace.name": "shop", "k8s.pod.name": "web-0"}
    filtered = {**pod, "reserver.nodes.asked": 2, "reserver.nodes.passed": 2}
    assert attributes(collector.spans["filter"]) == filtered
    bound = collector.spans["bind"]
    assert pod.items() <= attributes(bound).items()
    assert attributes(bound)["k8s.node.name"] == "worker-1"
    assert "pod cannot be read" in bound.status.message  # There is none.
    listed = collector.spans["reserver.v1.ReservationService/List"]
    assert (listed.trace_id.hex(), attributes(listed)["rpc.grpc.status_code"]) == (TRACE, 0)
    missing = collector.spans["reserver.v1.ReservationService/Get"]
    assert attributes(missing)["rpc.grpc.status_code"] == grpc.StatusCode.NOT_FOUND.value[0]
    assert missing.status.code == 2


async def test_a_move_that_has_ended_is_a_span_from_its_creation(collector: Collector) -> None:
    status = MoveStatus(
        phase=MovePhase.SUCCEEDED,
        reason=MoveReason.LANDED,
        source="worker-1",
        target="worker-2",
        started_at=11.0,
        evicted_at=12.5,
        finished_at=13.0,
    )
    tracing = Tracing()
    for status_now in (MoveStatus(), status):
        name, spec = PodName("shop", "web-0-move"), MoveSpec(pod=PodName("shop", "web-0"))
        tracing.move(Move(name=name, uid="uid", created_at=10.0, spec=spec, status=status_now))
    await tracing.end()
    span = collector.spans["move"]
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (10 * 10**9, 13 * 10**9)
    assert [(each.name, each.time_unix_nano) for each in span.events] == [
        ("turn", 11 * 10**9),
        ("evicted", 12_500_000_000),
    ]
    said = attributes(span)
    assert said["reserver.move.reason"] == "Landed"
    assert (said["reserver.move.source"], said["reserver.move.target"]) == ("worker-1", "worker-2")


def test_without_tracing_nothing_of_opentelemetry_is_imported() -> None:
    code = "import sys, reserver.app, reserver.cli.serve; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert "reserver.app" in names
    assert not [
        name for name in names if name.startswith(("opentelemetry", "reserver.process.tracing"))
    ]
