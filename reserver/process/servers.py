"""The servers of one process: the extender, health, metrics over TLS, webhooks and gRPC.

Metrics over TLS are for callers with a permitted token, as in Kubernetes' own components: the API
server returns the token's user (TokenReview), and whether that user may ``get`` the path
(SubjectAccessReview, `nonResourceURLs` in RBAC).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from reserver.errors import ApiError, TooMany
from reserver.extender.bindings import BIND_PATIENCE_S
from reserver.extender.handlers import Extender
from reserver.extender.metrics import Metrics
from reserver.extender.server import EXTENDER_LIMITS, HEALTH_LIMITS, Routes
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import Handler, HttpRequest, HttpResponse, Paths, error
from reserver.http.tls import Expiries, ServerTls
from reserver.k8s.client import ApiClient
from reserver.k8s.reviewer import Reviewer
from reserver.process import debugging
from reserver.process.assembly import Assembly
from reserver.process.reload import Reload
from reserver.reservations.enums import StoreKind
from reserver.settings.serve import Settings

if TYPE_CHECKING:
    from reserver.grpc.service import Service
    from reserver.webhook.certificate_secret import ServingPair

_BEARER = "bearer "


def guarded(paths: Paths, reviewer: Reviewer) -> Paths:
    """Return the same paths, answered only for users that may get them."""
    return {
        path: (method, partial(_guarded, handler, reviewer))
        for path, (method, handler) in paths.items()
    }


async def _guarded(handler: Handler, reviewer: Reviewer, request: HttpRequest) -> HttpResponse:
    header = request.headers.get("authorization", "")
    token = header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""
    try:
        user = await reviewer.authenticate(token, request.peer)
        if user is None:
            problem = "send a bearer token of the API server"
            return error(HTTPStatus.UNAUTHORIZED, problem)
        if not await reviewer.may_get(user, request.path):
            problem = f"{user.name} may not get {request.path}; grant it as a nonResourceURL"
            return error(HTTPStatus.FORBIDDEN, problem)
    except TooMany as exc:
        return error(HTTPStatus.TOO_MANY_REQUESTS, str(exc))
    except ApiError as exc:
        return error(HTTPStatus.SERVICE_UNAVAILABLE, f"the API server does not say: {exc}")
    answered = handler(request)
    return await answered if isinstance(answered, Awaitable) else answered


SHUTDOWN_S = BIND_PATIENCE_S + 1
"""Seconds in which requests in flight must finish."""

_METRICS_LIMITS = replace(HEALTH_LIMITS, header_bytes=8192)
"""The limits of health, with room for a token."""


@dataclass(frozen=True, slots=True)
class HttpListeners:
    """The HTTP listeners, with their paths.

    Attributes:
        reload: has the settings: addresses and allowed callers.
        routes: handlers of the extender, of health and of metrics.
        metrics: counts refused calls.
        reviews: client of the API server, for tokens and rights.
        expiries: measures the certificates of the extender's clients.
    """

    reload: Reload
    routes: Routes
    metrics: Metrics
    reviews: ApiClient
    expiries: Expiries

    async def serve(self, stack: AsyncExitStack) -> tuple[str, str | None, str | None]:
        """Serve until the stack ends; return the URLs of extender, health and metrics.

        Raises:
            ConfigurationError: the certificates cannot be used, or a port is taken.
        """
        profile: Paths = {debugging.PATH: ("GET", debugging.Profiler().profile)}
        profiled = profile if self.settings.profiling else {}
        public = self.routes.paths()
        inner = {**profiled, **debugging.paths(self.reload, (*public, *profiled))}
        return (
            await stack.enter_async_context(self._extender({**public, **inner})),
            await self._health(stack),
            await self._metrics({**self.routes.metrics_paths(), **inner}, stack),
        )

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.reload.settings

    def _extender(self, paths: Paths) -> AbstractAsyncContextManager[str]:
        settings = self.settings
        tls = ServerTls(settings.tls, settings.extender_allowed_names) if settings.tls else None
        self.expiries.callers = tls.admitted if tls else {}
        hosts = Hosts.of(settings.bind_address, settings.allowed_hosts)
        access = Access(EXTENDER_LIMITS, hosts, self.metrics.count_refused, tls)
        return listening(paths, (settings.bind_address, settings.http_port), SHUTDOWN_S, access)

    async def _health(self, stack: AsyncExitStack) -> str | None:
        address = self.settings.health_address
        if address is None:
            return None
        paths = dict(self.routes.health_paths())
        if self.settings.metrics_address is None:
            paths |= self.routes.metrics_paths()
        hosts = Hosts.of(address[0], self.settings.allowed_hosts)
        access = Access(HEALTH_LIMITS, hosts, self.metrics.count_refused)
        return await stack.enter_async_context(listening(paths, address, SHUTDOWN_S, access))

    async def _metrics(self, paths: Paths, stack: AsyncExitStack) -> str | None:
        address, files = self.settings.metrics_address, self.settings.metrics_tls
        if address is None or files is None:
            return None

        hosts = Hosts.of(address[0], self.settings.allowed_hosts)
        tls = ServerTls(files, None)  # The token identifies the caller.
        access = Access(_METRICS_LIMITS, hosts, self.metrics.count_refused, tls)
        reviewer = Reviewer(self.reviews, self.settings.namespace, time.monotonic)
        site = listening(guarded(paths, reviewer), address, SHUTDOWN_S, access)
        return await stack.enter_async_context(site)


_WEBHOOKS_S = 5.0


class ServedWebhooks(NamedTuple):
    """The webhooks, ready to serve.

    Attributes:
        listener: yields the base URL of the webhooks.
        loops: background tasks of the leader.
        release: releases unused SchedPatch slots for a successor.
    """

    listener: AbstractAsyncContextManager[str]
    loops: tuple[Callable[[], Coroutine[None, None, None]], ...]
    release: Callable[[], Awaitable[None]]


def webhooks(
    settings: Settings, assembly: Assembly, client: ApiClient, metrics: Metrics, expiries: Expiries
) -> ServedWebhooks | None:
    """Return the webhooks, ready to serve; None if they are disabled.

    Raises:
        ConfigurationError: the files of the certificate cannot be read.
    """
    patches = assembly.features.patches
    if settings.webhook_address is None or patches is None:
        return None
    from reserver.webhook.certificate_rotation import ServedCertificate
    from reserver.webhook.certificate_secret import SECRET
    from reserver.webhook.certificates import CertificateMaker, WebhookTls
    from reserver.webhook.handlers import WEBHOOK_LIMITS, Resizes, Webhooks

    loops: list[Callable[[], Coroutine[None, None, None]]] = [patches.run]
    tls, names = WebhookTls(settings.webhook_tls), settings.webhook_names
    if settings.webhook_tls is None:
        maker = CertificateMaker(names)
        home, clock = settings.namespace, assembly.clock

        def serve(pair: ServingPair) -> None:
            tls.serve(pair)
            expiries.keep(f"secret/{SECRET}", pair.certificate)

        loops.append(ServedCertificate(client, home, maker, serve, clock).run)
    resizes = Resizes(assembly.state, assembly.clock, assembly.readiness)
    answered = Webhooks(patches, resizes.judge, assembly.clock, metrics)
    hosts = Hosts.of(settings.webhook_address[0], (*names, *settings.allowed_hosts))
    access = Access(WEBHOOK_LIMITS, hosts, metrics.count_refused, tls)
    listener = listening(answered.paths(), settings.webhook_address, _WEBHOOKS_S, access)
    return ServedWebhooks(listener, tuple(loops), patches.release)


def grpc_service(
    settings: Settings, reviews: ApiClient, assembly: Assembly, extender: Extender, metrics: Metrics
) -> Service:
    """Return the services; their watches show changes from now on.

    Args:
        settings: the allowed callers and their audiences.
        reviews: client of the API server, for tokens and rights.
        assembly: the state and stores to serve.
        extender: answers the calls of kube-scheduler.
        metrics: counts the calls.
    """
    from reserver.grpc.access import CallAccess
    from reserver.grpc.service import Service

    access = None
    if settings.wants_grpc_tokens:
        asked = settings.namespace, time.monotonic, settings.grpc_audiences
        access = CallAccess(
            Reviewer(reviews, *asked), writes_objects=assembly.stores.default is StoreKind.OBJECT
        )
    service = Service(
        state=assembly.state,
        stores=assembly.stores,
        extender=extender,
        namespace=settings.namespace,
        clock=assembly.clock,
        access=access,
        readiness=assembly.readiness,
        counted=metrics,
        past=assembly.archivist,
        counted_holds=assembly.accountant,
        dump=partial(debugging.dump, settings, assembly, metrics.exposition.text),
    )
    assembly.listeners.add(service.feed)
    return service
