"""Credentials for the API server, as a value."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass


async def _nothing() -> None:
    """Renew nothing."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of the API server, and Reserver's credentials for it.

    Attributes:
        server: base URL, no trailing slash.
        source: where this comes from, for a person.
        tls: how to verify it and what certificate to show; None over plain HTTP.
        server_name: the name to expect in its certificate, None for that of the URL.
        proxy: URL of a proxy, or None.
        namespace: of the kubeconfig's context; empty where it names none.
        renew: keeps renewing what an exec plugin gave, and what was read from files that changed.
    """

    server: str
    source: str
    tls: ssl.SSLContext | None
    server_name: str | None
    proxy: str | None
    namespace: str
    _token: Callable[[], Awaitable[str | None]]
    renew: Callable[[], Coroutine[None, None, None]] = _nothing

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, renewed where it expires."""
        token = await self._token()
        return token.strip() if token else None


def lenient(context: ssl.SSLContext) -> ssl.SSLContext:
    """Accept cluster CAs made before 2025: they often lack what Python 3.13 wants of them."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
