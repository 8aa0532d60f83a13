"""The API server's address and Reserver's credentials: kubeconfig or in-cluster service account.

The kubernetes package reads kubeconfigs with every kind of user that it supports (token, token
file, client certificate, exec plugin, OIDC), and renews expiring credentials. A service account is
two files: importing the package for them would take a fifth of the startup time.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from reserver.errors import ConfigurationError


async def _nothing() -> None:
    """Renew nothing."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of the API server, and Reserver's credentials for it.

    Attributes:
        server: base URL, no trailing slash.
        source: origin of the credentials, for messages.
        tls: context with the CA and the client certificate; None for plain HTTP.
        server_name: expected name in the server's certificate, None for the host of the URL.
        proxy: URL of a proxy, or None.
        namespace: namespace of the kubeconfig's context; empty if it has none.
        renew: renews credentials of an exec plugin, and of changed files, until cancelled.
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
        """Return the value of the Authorization header; an expiring token is renewed first."""
        token = await self._token()
        return token.strip() if token else None


def lenient(context: ssl.SSLContext) -> ssl.SSLContext:
    """Accept cluster CAs made before 2025: many lack extensions that Python 3.13 requires."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


_RENEWAL_S = 60
"""Seconds between two checks of a credential that expires."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which the kubelet keeps token and CA of a pod's service account."""


async def load(kubeconfig: Path | None, context: str = "") -> Credentials:
    """Return the credentials of a kubeconfig, or of the environment.

    Args:
        kubeconfig: the file; None for ``$KUBECONFIG``, then the service account of the pod that
            Reserver runs in, then ``~/.kube/config``.
        context: context of the kubeconfig; empty for its current context.

    Raises:
        ConfigurationError: there are no credentials, or they cannot be read.
    """
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
    if kubeconfig is None and in_cluster and not context:
        source = "in-cluster service account"
        try:
            return _of_service_account(source)
        except (OSError, ValueError, KeyError) as exc:
            raise ConfigurationError(f"{source} cannot be used: {exc}") from exc
    path = str(kubeconfig or os.environ.get("KUBECONFIG") or Path.home() / ".kube/config")
    from reserver.k8s.kubeconfig import Kubeconfig

    return await Kubeconfig(path, context).credentials()


def _of_service_account(source: str) -> Credentials:
    host, port = (os.environ[f"KUBERNETES_SERVICE_{name}"] for name in ("HOST", "PORT"))
    return Credentials(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        source=source,
        tls=lenient(ssl.create_default_context(cafile=SERVICE_ACCOUNT / "ca.crt")),
        server_name=None,
        proxy=None,
        namespace="",
        _token=_TokenFile(SERVICE_ACCOUNT / "token"),
    )


class _TokenFile:
    """A token that the kubelet replaces before it expires."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read()

    def _read(self) -> None:
        self._token = f"Bearer {self._path.read_text()}"
        self._read_at = time.monotonic()

    async def __call__(self) -> str:
        if time.monotonic() > self._read_at + _RENEWAL_S:
            self._read()
        return self._token
