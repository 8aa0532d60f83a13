"""Assembles the webhooks: handlers, listener, and the rotation of their certificate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import NamedTuple

from reserver.extender.metrics import Metrics
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.tls import Expiries
from reserver.k8s.client import ApiClient
from reserver.process.assembly import Assembly
from reserver.settings.serve import Settings
from reserver.webhook.certificate_rotation import ServedCertificate
from reserver.webhook.certificate_secret import SECRET, ServingPair
from reserver.webhook.certificates import CertificateMaker, WebhookTls
from reserver.webhook.handlers import WEBHOOK_LIMITS, Resizes, Webhooks

_SHUTDOWN_S = 5.0


class Prepared(NamedTuple):
    """The webhooks, ready to serve.

    Attributes:
        listener: yields the base URL of the webhooks.
        loops: background tasks of the leader.
        release: releases unused SchedPatch slots for a successor.
    """

    listener: AbstractAsyncContextManager[str]
    loops: tuple[Callable[[], Coroutine[None, None, None]], ...]
    release: Callable[[], Awaitable[None]]

    async def serve(self, stack: AsyncExitStack) -> str:
        """Serve the webhooks until the stack ends; return their URL."""
        return await stack.enter_async_context(self.listener)


def prepare(
    settings: Settings, assembly: Assembly, client: ApiClient, metrics: Metrics, expiries: Expiries
) -> Prepared | None:
    """Return the webhooks, ready to serve; None if they are disabled.

    Raises:
        ConfigurationError: the files of the certificate cannot be read.
    """
    patches = assembly.features.patches
    if settings.webhook_address is None or patches is None:
        return None
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
    webhooks = Webhooks(patches, resizes.judge, assembly.clock, metrics)
    hosts = Hosts.of(settings.webhook_address[0], (*names, *settings.allowed_hosts))
    access = Access(WEBHOOK_LIMITS, hosts, metrics.count_refused, tls)
    listener = listening(webhooks.paths(), settings.webhook_address, _SHUTDOWN_S, access)
    return Prepared(listener, tuple(loops), patches.release)
