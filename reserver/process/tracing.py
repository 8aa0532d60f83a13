"""OpenTelemetry traces of decisions, bindings, gRPC calls and moves.

Only this module imports OpenTelemetry, and it is imported only with --tracing (`app.py`): traced
subclasses then replace the extender and its bindings, so that untraced calls have no check.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, use_span

from reserver import DISTRIBUTION
from reserver.cluster.pod import Pod
from reserver.extender.bindings import Bindings
from reserver.extender.handlers import Extender
from reserver.extender.protocol import ExtenderBindingArgs
from reserver.moves.model import Move
from reserver.moves.phases import MovePhase
from reserver.scheduling.bind import BindVerdict
from reserver.scheduling.preempt import PreemptVerdict, Victims
from reserver.scheduling.verdicts import FilterVerdict

_POD, _NAMESPACE, _NODE = "k8s.pod.name", "k8s.namespace.name", "k8s.node.name"
"""Attribute names of OpenTelemetry's conventions for Kubernetes."""

_NANOSECONDS = 1_000_000_000


class Tracing:
    """Sends spans to a collector, set by the standard variables OTEL_….

    Attributes:
        tracer: starts spans.
    """

    def __init__(self) -> None:
        """Begin; the collector need not be running yet."""
        known = {SERVICE_NAME: "reserver", SERVICE_VERSION: version(DISTRIBUTION)}
        resource = Resource(known).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer: Tracer = self._provider.get_tracer("reserver", version(DISTRIBUTION))

    def extender(self, *args: Any, **more: Any) -> Extender:  # noqa: ANN401 - as Extender
        """Return an extender with traces."""
        return TracedExtender(self.tracer, *args, **more)

    def calls(self) -> grpc.aio.ServerInterceptor:
        """Return an interceptor that makes each gRPC call a span."""
        return TracedCalls(self.tracer)

    async def end(self) -> None:
        """Send the remaining spans, within the exporter's own time limit."""
        await asyncio.to_thread(self._provider.shutdown)

    def move(self, move: Move) -> None:
        """Send a span of a move that has ended, with its turn and its eviction as events.

        The move may have begun before this process, so the times are those of its status.
        """
        if not move.is_over:
            return
        status = move.status
        span = self.tracer.start_span(
            "move",
            start_time=_ns(move.created_at),
            attributes={
                _NAMESPACE: move.pod.namespace,
                _POD: move.pod.name,
                "reserver.move.name": move.name.name,
                "reserver.move.mode": move.spec.mode,
                "reserver.move.phase": status.phase,
                "reserver.move.reason": status.reason or "",
                "reserver.move.source": status.source,
                "reserver.move.target": status.target,
            },
        )
        for name, at in (("turn", status.started_at), ("evicted", status.evicted_at)):
            if at is not None:
                span.add_event(name, timestamp=_ns(at))
        if status.phase is MovePhase.FAILED:
            span.set_status(Status(StatusCode.ERROR, status.message))
        span.end(None if status.finished_at is None else _ns(status.finished_at))


class TracedExtender(Extender):
    """An extender that makes each decision a span."""

    def __init__(self, tracer: Tracer, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as Extender
        """Decide as an `Extender` with the other arguments."""
        super().__init__(*args, **more)
        self._tracer = tracer
        state, pods, _, *others = args
        self.bindings = TracedBindings(tracer, state, pods, *others)

    def filter(self, pod: Pod, names: list[str]) -> FilterVerdict:
        """Return the nodes that a pod may have."""
        with _deciding(self._tracer, "filter", pod.name.namespace, pod.name.name) as span:
            verdict = super().filter(pod, names)
            span.set_attribute("reserver.nodes.asked", len(names))
            span.set_attribute("reserver.nodes.passed", len(verdict.nodes))
            return verdict

    async def preempt(self, pod: Pod, victims: Victims) -> PreemptVerdict:
        """Return the nodes on which pods may be evicted for a pod."""
        with _deciding(self._tracer, "preempt", pod.name.namespace, pod.name.name) as span:
            verdict = await super().preempt(pod, victims)
            span.set_attribute("reserver.nodes.asked", len(victims))
            span.set_attribute("reserver.nodes.passed", len(verdict.nodes))
            return verdict


class TracedBindings(Bindings):
    """Bindings that make each binding a span, including the API server's write."""

    def __init__(self, tracer: Tracer, *args: Any) -> None:  # noqa: ANN401 - as Bindings
        """Bind as `Bindings` with the other arguments."""
        super().__init__(*args)
        self._tracer = tracer

    async def bind(self, args: ExtenderBindingArgs) -> BindVerdict:
        """Bind a pod; return the refusal, or the claims of the binding."""
        with _deciding(self._tracer, "bind", args.pod_namespace, args.pod_name) as span:
            span.set_attribute(_NODE, args.node)
            verdict = await super().bind(args)
            if verdict.refusal is not None:
                span.set_status(Status(StatusCode.ERROR, verdict.refusal))
            span.set_attribute("reserver.claims", len(verdict.claims))
            return verdict


class TracedCalls(grpc.aio.ServerInterceptor):
    """Makes each gRPC call a span, within the caller's trace if it has one."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:  # noqa: ANN401 - as grpc types handlers
        """Return the handler of a call, within a span; all take streams (`interceptor.Calls`)."""
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith("/reserver.v1."):
            return handler
        codec = handler.request_deserializer, handler.response_serializer
        call = handler_call_details.method, dict(handler_call_details.invocation_metadata or ())
        if handler.stream_unary is not None:

            async def single(requests: Any, context: Any) -> Any:  # noqa: ANN401 - any message
                with self._calling(*call, context) as span, use_span(span):
                    return await handler.stream_unary(requests, context)

            return grpc.stream_unary_rpc_method_handler(single, *codec)

        async def streaming(requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: ANN401
            with self._calling(*call, context):
                async for response in handler.stream_stream(requests, context):
                    yield response

        return grpc.stream_stream_rpc_method_handler(streaming, *codec)

    @contextmanager
    def _calling(self, path: str, metadata: Mapping[str, Any], context: Any) -> Iterator[Span]:  # noqa: ANN401
        service, method = path.lstrip("/").split("/")
        span = self._tracer.start_span(
            path.lstrip("/"),
            extract(metadata),
            SpanKind.SERVER,
            {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
        )
        try:
            yield span
        finally:
            code = context.code() or 0
            number = code.value[0] if isinstance(code, grpc.StatusCode) else code
            span.set_attribute("rpc.grpc.status_code", number)
            if number:
                span.set_status(Status(StatusCode.ERROR, str(context.details() or "")))
            span.end()


@contextmanager
def _deciding(tracer: Tracer, name: str, namespace: str, pod: str) -> Iterator[Span]:
    known = {_NAMESPACE: namespace, _POD: pod}
    with tracer.start_as_current_span(name, kind=SpanKind.SERVER, attributes=known) as span:
        yield span


def _ns(seconds: float) -> int:
    return round(seconds * _NANOSECONDS)
