"""Assembles the webhooks: handlers, listener, and the keeper of their certificate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import NamedTuple

from reserver.assembly import Assembly
from reserver.config import Settings
from reserver.kube.api.client import ApiClient
from reserver.kube.patching.certificates import ServedCertificate
from reserver.server.door import Door
from reserver.server.expiries import Expiries
from reserver.server.gate import Hosts
from reserver.server.listen import listening
from reserver.server.metrics import Metrics
from reserver.server.webhook.certificates import CertificateMaker
from reserver.server.webhook.handlers import WEBHOOK_LIMITS, Webhooks
from reserver.server.webhook.resizing import Resizes
from reserver.server.webhook.tls import WebhookTls
from reserver.wire.patching.secretform import SECRET, ServingPair

_SHUTDOWN_S = 5.0


class Prepared(NamedTuple):
    """The webhooks, ready to serve.

    Attributes:
        listener: yields their URL.
        loops: what runs on the leader.
        release: gives back what a successor may use.
    """

    listener: AbstractAsyncContextManager[str]
    loops: tuple[Callable[[], Coroutine[None, None, None]], ...]
    release: Callable[[], Awaitable[None]]

    async def serve(self, stack: AsyncExitStack) -> str:
        """Serve them until a stack is left; return their URL."""
        return await stack.enter_async_context(self.listener)


def prepare(
    settings: Settings,
    assembly: Assembly,
    client: ApiClient,
    metrics: Metrics,
    expiries: Expiries,
) -> Prepared | None:
    """Return the webhooks, ready to serve; None where they are not served.

    Raises:
        ConfigurationError: the files of their certificate cannot be read.
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
    door = Door(WEBHOOK_LIMITS, hosts, metrics.count_refused, tls)
    listener = listening(webhooks.paths(), settings.webhook_address, _SHUTDOWN_S, door)
    return Prepared(listener, tuple(loops), patches.release)
