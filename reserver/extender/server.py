"""The HTTP server: the extender's verbs, health, metrics, explanations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qs, unquote

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram

from reserver.cluster.pod import PodName
from reserver.errors import NotReady
from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.extender.protocol import (
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    decode_bind,
    decode_filter,
    decode_preempt,
)
from reserver.http.message import (
    Answered,
    HttpRequest,
    HttpResponse,
    ListenerLimits,
    Paths,
    error,
    text,
)
from reserver.k8s.objects.objects import encode
from reserver.k8s.objects.pods import PodObject

MAX_BODY_BYTES = 8 * 2**20
"""Most bytes of a call's body: a pod (1.5 MiB at most) and 10,000 node names take half of that."""

_BIND_BYTES = 2**16
"""Most bytes of a Bind call's body: four names of at most 253 bytes each."""

EXTENDER_LIMITS = ListenerLimits(
    bodies={"/filter": MAX_BODY_BYTES, "/preempt": MAX_BODY_BYTES, "/bind": _BIND_BYTES}
)
"""The limits for kube-scheduler, which opens a connection for each pending binding."""

HEALTH_LIMITS = ListenerLimits(
    connections=128, new=128, new_per_peer=32, lifetime_s=10.0, idle_s=10.0, header_bytes=2048
)
"""The limits for probes and Prometheus, on an open port: one request per connection."""

_EXPLAIN = "/explain/"


Check = tuple[str, str]
"""The name of a readiness check, and the reason of its failure; empty if it passes."""


class Routes:
    """The handlers of one server."""

    def __init__(
        self,
        extender: Extender,
        metrics: Metrics,
        obstacles: Callable[[], tuple[str, ...]],
        checks: Callable[[], Iterable[Check]] = tuple,
        inability: Callable[[], tuple[str, ...]] | None = None,
    ) -> None:
        """Answer for an extender.

        Args:
            obstacles: returns the reasons why the extender cannot decide calls.
            checks: returns the single checks of `obstacles`.
            inability: returns the reasons why the process cannot lead or, as the leader, cannot
                decide calls; None without a standby.
        """
        self._extender = extender
        self._metrics = metrics
        self._counted: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._obstacles = obstacles
        self._checks = checks
        self._inability = inability or obstacles

    def paths(self) -> Paths:
        """Return the handlers of all paths."""
        return {
            "/filter": ("POST", self.filter),
            "/preempt": ("POST", self.preempt),
            "/bind": ("POST", self.bind),
            _EXPLAIN: ("GET", self.explain),
            **self.health_paths(),
            **self.metrics_paths(),
        }

    def health_paths(self) -> Paths:
        """Return the handlers of health."""
        return {
            "/healthz": ("GET", self.healthz),
            "/livez": ("GET", self.healthz),
            "/readyz": ("GET", self.readyz),
            "/readyz/able": ("GET", self.able),
        }

    def metrics_paths(self) -> Paths:
        """Return the handlers of metrics."""
        return {"/metrics": ("GET", self.metrics)}

    def filter(self, request: HttpRequest) -> Answered:
        """Answer kube-scheduler's Filter call."""
        began = time.perf_counter()
        pod, names = decode_filter(request.body)
        if self._extender.is_due:
            return self._filter_advanced(pod, names, began)
        return self._filter(pod, names, began)

    async def _filter_advanced(
        self, pod: PodObject, names: list[str], began: float
    ) -> HttpResponse:
        await self._extender.advanced()
        return self._filter(pod, names, began)

    def _filter(self, pod: PodObject, names: list[str], began: float) -> HttpResponse:
        try:
            verdict = self._extender.filter(self._extender.read(pod), names)
        except NotReady as exc:
            return self._answered("filter", "error", began, ExtenderFilterResult(error=str(exc)))
        outcome = "passed" if verdict.nodes else "refused"
        result = ExtenderFilterResult(
            node_names=verdict.nodes, failed_and_unresolvable_nodes=verdict.refused
        )
        answer = self._answered("filter", outcome, began, result)
        if verdict.effects:
            # kube-scheduler must have the response first, or the retry finds the pod in flight.
            return answer._replace(then=partial(self._extender.carry_out, verdict))
        return answer

    async def preempt(self, request: HttpRequest) -> HttpResponse:
        """Answer kube-scheduler's Preempt call; the protocol's only error is an HTTP status."""
        began = time.perf_counter()
        pod, victims = decode_preempt(request.body)
        uids = {node: victims[node].uids() for node in victims}
        try:
            verdict = await self._extender.preempt(pod.value(), uids)
        except NotReady as exc:
            self._count("preempt", "error", began)
            return error(HTTPStatus.SERVICE_UNAVAILABLE, str(exc))
        outcome = "passed" if verdict.nodes else "refused"
        result = ExtenderPreemptionResult({node: victims[node] for node in verdict.nodes})
        return self._answered("preempt", outcome, began, result)

    async def bind(self, request: HttpRequest) -> HttpResponse:
        """Answer kube-scheduler's Bind call."""
        args = decode_bind(request.body)
        began = time.perf_counter()
        try:
            verdict = await self._extender.bindings.bind(args)
        except NotReady as exc:
            return self._answered("bind", "error", began, ExtenderBindingResult(error=str(exc)))
        outcome = "bound" if verdict.refusal is None else "refused"
        result = ExtenderBindingResult(error=verdict.refusal or "")
        return self._answered("bind", outcome, began, result)

    async def healthz(self, _: HttpRequest) -> HttpResponse:
        """Report that the process answers."""
        return text("ok\n")

    async def readyz(self, request: HttpRequest) -> HttpResponse:
        """Report whether calls are decided, or why not; with ``?verbose``, check by check."""
        obstacles = self._obstacles()
        if "verbose" in parse_qs(request.query, keep_blank_values=True):
            return _verbose(self._checks(), is_ready=not obstacles)
        return _ready_unless(obstacles)

    async def able(self, _: HttpRequest) -> HttpResponse:
        """Report whether this process could lead, or leads and decides calls; if not, why."""
        return _ready_unless(self._inability())

    async def metrics(self, _: HttpRequest) -> HttpResponse:
        """Expose the metrics to Prometheus."""
        return HttpResponse(await self._metrics.exposition.text(), content_type=CONTENT_TYPE_LATEST)

    async def explain(self, request: HttpRequest) -> HttpResponse:
        """Return the effect of the holds on a pod, in numbers."""
        namespace, _, pod = unquote(request.path.removeprefix(_EXPLAIN)).partition("/")
        name = PodName(namespace, pod)
        try:
            explanation = await self._extender.explain(name)
        except NotReady as exc:
            return error(HTTPStatus.SERVICE_UNAVAILABLE, str(exc))
        if explanation is None:
            return error(HTTPStatus.NOT_FOUND, f"there is no pod {name}")
        return HttpResponse(encode(explanation))

    def _answered(self, verb: str, outcome: str, began: float, result: object) -> HttpResponse:
        answer = HttpResponse(encode(result))
        self._count(verb, outcome, began)
        return answer

    def _count(self, verb: str, outcome: str, began: float) -> None:
        counted = self._counted.get((verb, outcome))
        if counted is None:  # Looking up labels takes longer.
            counted = self._metrics.calls.labels(verb, outcome), self._metrics.seconds.labels(verb)
            self._counted[verb, outcome] = counted
        counted[0].inc()
        counted[1].observe(time.perf_counter() - began)


def _verbose(checks: Iterable[Check], *, is_ready: bool) -> HttpResponse:
    """Return the checks in the format of Kubernetes' own components."""
    lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in checks]
    lines.append(f"readyz check {'passed' if is_ready else 'failed'}\n")
    status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    return text("\n".join(lines), status)


def _ready_unless(obstacles: tuple[str, ...]) -> HttpResponse:
    if obstacles:
        said = "".join(f"{obstacle}\n" for obstacle in obstacles)
        return text(said, HTTPStatus.SERVICE_UNAVAILABLE)
    return text("ok\n")
