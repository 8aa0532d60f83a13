"""The HTTP server: the extender's verbs, health, metrics, explanations."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, NotReady
from reserver.printable import printable
from reserver.quarantine import take_note
from reserver.server.connection import Limits
from reserver.server.exposition import Exposition
from reserver.server.extender import Extender
from reserver.server.metrics import Metrics
from reserver.wire.extender import (
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    decode_bind,
    decode_filter,
    decode_preempt,
)
from reserver.wire.k8s.objects import encode

MAX_BODY_BYTES = 8 * 2**20
"""Bound on a call's body: a pod (at most 1.5 MiB) and the names of 10,000 nodes take half of it."""

_BIND_BYTES = 2**16
"""Bound on a Bind call's body: four names, each of 253 bytes at most."""

EXTENDER_LIMITS = Limits(
    bodies={"/filter": MAX_BODY_BYTES, "/preempt": MAX_BODY_BYTES, "/bind": _BIND_BYTES}
)
"""For kube-scheduler, which opens a connection for each binding under way."""

HEALTH_LIMITS = Limits(
    connections=128, new=128, new_per_peer=32, lifetime_s=10.0, idle_s=10.0, header_bytes=2048
)
"""For probes and Prometheus, on a port that is open to anybody: one request per connection."""

_JSON = "application/json"


class Routes:
    """The handlers of one server."""

    def __init__(
        self, extender: Extender, metrics: Metrics, obstacles: Callable[[], tuple[str, ...]]
    ) -> None:
        """Answer for an extender; `obstacles` says what keeps it from deciding."""
        self._extender = extender
        self._metrics = metrics
        self._exposition = Exposition(metrics.registry, metrics.others)
        self._obstacles = obstacles

    def application(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_explain_bad_input])
        app.add_routes(
            [
                web.post("/filter", self.filter),
                web.post("/preempt", self.preempt),
                web.post("/bind", self.bind),
                web.get("/explain/{namespace}/{pod}", self.explain),
                *self._health(),
            ]
        )
        return app

    def health_application(self) -> web.Application:
        """Return an application with only health and metrics."""
        app = web.Application()
        app.add_routes(self._health())
        return app

    def _health(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self.healthz),
            web.get("/readyz", self.readyz),
            web.get("/metrics", self.metrics),
        ]

    async def filter(self, request: web.Request) -> web.StreamResponse:
        """Answer kube-scheduler's Filter call."""
        body = await request.read()
        began = time.perf_counter()
        pod, names = decode_filter(body)
        await self._extender.advanced()
        try:
            verdict = self._extender.filter(pod.value(), names)
        except NotReady as exc:
            return self._answered("filter", "error", began, ExtenderFilterResult(error=str(exc)))
        outcome = "passed" if verdict.nodes else "refused"
        result = ExtenderFilterResult(
            node_names=verdict.nodes, failed_and_unresolvable_nodes=verdict.refused
        )
        response = self._answered("filter", outcome, began, result)
        if verdict.effects:
            # kube-scheduler must have the answer first, or the retry finds the pod in flight.
            await response.prepare(request)
            await response.write_eof()
            self._extender.carry_out(verdict)
        return response

    async def preempt(self, request: web.Request) -> web.StreamResponse:
        """Answer kube-scheduler's Preempt call; its protocol has no other error than a status."""
        body = await request.read()
        began = time.perf_counter()
        pod, victims = decode_preempt(body)
        uids = {node: victims[node].uids() for node in victims}
        try:
            verdict = await self._extender.preempt(pod.value(), uids)
        except NotReady as exc:
            self._count("preempt", "error", began)
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, str(exc))
        outcome = "passed" if verdict.nodes else "refused"
        result = ExtenderPreemptionResult({node: victims[node] for node in verdict.nodes})
        return self._answered("preempt", outcome, began, result)

    async def bind(self, request: web.Request) -> web.StreamResponse:
        """Answer kube-scheduler's Bind call."""
        args = decode_bind(await request.read())
        began = time.perf_counter()
        try:
            verdict = await self._extender.bindings.bind(args)
        except NotReady as exc:
            return self._answered("bind", "error", began, ExtenderBindingResult(error=str(exc)))
        outcome = "bound" if verdict.refusal is None else "refused"
        result = ExtenderBindingResult(error=verdict.refusal or "")
        return self._answered("bind", outcome, began, result)

    async def healthz(self, _: web.Request) -> web.Response:
        """Say that the process answers."""
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        """Say whether calls are decided and, if not, why."""
        if obstacles := self._obstacles():
            text = "".join(f"{obstacle}\n" for obstacle in obstacles)
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=text)
        return web.Response(text="ok\n")

    async def metrics(self, _: web.Request) -> web.Response:
        """Expose the metrics to Prometheus."""
        return web.Response(
            body=self._exposition.text(), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def explain(self, request: web.Request) -> web.Response:
        """Say in numbers what the holds mean for a pod."""
        name = PodName(request.match_info["namespace"], request.match_info["pod"])
        await self._extender.advanced()
        try:
            explanation = self._extender.explain(name)
        except NotReady as exc:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, str(exc))
        if explanation is None:
            return _error(HTTPStatus.NOT_FOUND, f"there is no pod {name}")
        return web.Response(body=encode(asdict(explanation)), content_type=_JSON)

    def _answered(self, verb: str, outcome: str, began: float, result: object) -> web.Response:
        response = web.Response(body=encode(result), content_type=_JSON)
        self._count(verb, outcome, began)
        return response

    def _count(self, verb: str, outcome: str, began: float) -> None:
        self._metrics.calls.labels(verb, outcome).inc()
        self._metrics.seconds.labels(verb).observe(time.perf_counter() - began)


@web.middleware
async def _explain_bad_input(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except InvalidInput as exc:
        return _error(HTTPStatus.BAD_REQUEST, str(exc))
    except (web.HTTPException, MemoryError):
        raise
    except Exception as exc:  # noqa: BLE001 - kube-scheduler is told, and tries the pod again
        fault = take_note("http", request.path, exc)
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, str(fault))


def _error(status: HTTPStatus, message: str) -> web.Response:
    return web.Response(
        status=status, body=encode({"error": printable(message)}), content_type=_JSON
    )
