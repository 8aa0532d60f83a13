"""Keeps the webhooks' certificate in a Secret, rotates it, and updates the caBundle of webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from reserver.errors import ApiError, InvalidInput
from reserver.k8s.api_errors import advice
from reserver.k8s.client import JSON_PATCH, ApiClient
from reserver.k8s.objects.objects import decode
from reserver.webhook.certificate_secret import (
    CONFIGURATIONS,
    SECRET,
    ConfigurationObject,
    SecretObject,
    ServingPair,
    secrets_path,
    show_secret,
)

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 10.0
"""Seconds between two checks of the Secret and the webhook configurations."""

SPREAD_S = 10.0
"""Seconds after which every API server trusts a new caBundle."""


class Maker(Protocol):
    """Makes certificates."""

    def make(self, now: float) -> ServingPair:
        """Return a new certificate with a CA of its own, valid from `now` (unix seconds) on."""

    def is_due(self, pair: ServingPair, now: float) -> bool:
        """Return whether a certificate must be replaced: it expires soon or has other names."""


class ServedCertificate:
    """The serving certificate of the webhooks, which only the leader maintains.

    A new certificate is served only after the caBundle contains the new and the former CA, so no
    call fails. A process that dies in between leaves a CA too many there; the next one starts
    again.
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        maker: Maker,
        serve: Callable[[ServingPair], None],
        clock: Callable[[], float],
    ) -> None:
        """Keep the certificate in a Secret of a namespace.

        Args:
            serve: called with each new certificate to serve.
            clock: returns unix seconds.
        """
        self._client = client
        self._namespace = namespace
        self._maker = maker
        self._serve = serve
        self._clock = clock
        self._served: ServingPair | None = None
        self._fault = ""

    async def run(self) -> None:
        """Check and rotate the certificate until cancelled."""
        while True:
            try:
                await self.look()
                self._fault = ""
            except ApiError as exc:
                if not exc.is_conflict:  # Another Reserver wrote the Secret: read it next time.
                    self._log_once(advice(exc))
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Ensure that a valid certificate exists, is trusted by API servers, and is served.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        version, kept = await self._read()
        if kept is None or self._maker.is_due(kept, self._clock()):
            former = self._served or kept
            kept = self._maker.make(self._clock())
            if former is not None:
                kept = kept._replace(ca=kept.ca + _first(former.ca))
            await self._trust(kept)
            if self._served is not None:
                await asyncio.sleep(SPREAD_S)
            await self._write(kept, version)
            log.info("certificate of the webhooks made", secret=f"{self._namespace}/{SECRET}")
        else:
            await self._trust(kept)
        if kept != self._served:
            self._serve(kept)
            self._served = kept

    async def _read(self) -> tuple[str, ServingPair | None]:
        try:
            raw = await self._client.get(secrets_path(self._namespace, SECRET))
        except ApiError as exc:
            if exc.is_absent:
                return "", None
            raise
        secret = decode(SecretObject, raw)
        try:
            return secret.metadata.resource_version, secret.pair()
        except InvalidInput as exc:
            log.warning("certificate is made anew", why=str(exc))
            return secret.metadata.resource_version, None

    async def _write(self, pair: ServingPair, version: str) -> None:
        body = show_secret(self._namespace, pair, version)
        if version:
            await self._client.replace(secrets_path(self._namespace, SECRET), body)
        else:
            await self._client.create(secrets_path(self._namespace), body)

    async def _trust(self, pair: ServingPair) -> None:
        for path in CONFIGURATIONS:
            try:
                found = decode(ConfigurationObject, await self._client.get(path))
                if patch := found.trusting(pair.ca):
                    await self._client.patch(path, patch, JSON_PATCH)
            except ApiError as exc:
                if not exc.is_absent:  # Either webhook may not be installed.
                    raise

    def _log_once(self, fault: str) -> None:
        if fault != self._fault:  # One line for each fault, not for each retry.
            log.warning("certificate of the webhooks cannot be kept, retrying", why=fault)
        self._fault = fault


def _first(bundle: bytes) -> bytes:
    """Return the first CA of a bundle: no process serves certificates of the older CAs."""
    end = b"-----END CERTIFICATE-----\n"
    return bundle[: bundle.find(end) + len(end)]
