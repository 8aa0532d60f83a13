"""Where the API server is and who Reserver is to it: kubeconfig or in-cluster service account.

The kubernetes package reads kubeconfigs, with every kind of user it knows (token, token file,
client certificate, exec plugin, OIDC), and renews what expires. A service account is two files:
importing the package for them would be a fifth of a start.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reserver.errors import ConfigurationError

_RENEWAL_S = 60
"""How often a credential that expires is looked at, in seconds."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet keeps the token and the CA of a pod's service account."""


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
        renew: keeps renewing what an exec plugin gave; returns if there is nothing to renew.
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


async def load(kubeconfig: Path | None, context: str = "") -> Credentials:
    """Return the credentials of a kubeconfig or, without one, those of the environment.

    Args:
        kubeconfig: the file; None for ``$KUBECONFIG``, then the service account of the pod that
            Reserver runs in, then ``~/.kube/config``.
        context: of the kubeconfig; its current one if it is empty.

    Raises:
        ConfigurationError: there are none, or they cannot be read.
    """
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
    if kubeconfig is None and in_cluster and not context:
        source = "in-cluster service account"
        try:
            return _of_service_account(source)
        except (OSError, ValueError, KeyError) as exc:
            raise ConfigurationError(f"{source} cannot be used: {exc}") from exc
    path = str(kubeconfig or os.environ.get("KUBECONFIG") or Path.home() / ".kube/config")
    return await _of_kubeconfig(path, context)


def _of_service_account(source: str) -> Credentials:
    host, port = (os.environ[f"KUBERNETES_SERVICE_{name}"] for name in ("HOST", "PORT"))
    return Credentials(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        source=source,
        tls=_lenient(ssl.create_default_context(cafile=SERVICE_ACCOUNT / "ca.crt")),
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


async def _of_kubeconfig(path: str, context: str) -> Credentials:
    from kubernetes.aio import config as kubernetes_config
    from kubernetes.aio.client import Configuration

    configuration = Configuration()
    source = f"kubeconfig {path}"
    try:
        _check_readable(path)
        loader = await kubernetes_config.load_kube_config(
            config_file=path,
            context=context or None,
            client_configuration=configuration,
            persist_config=False,
        )

        async def token() -> str | None:
            found: str | None = await configuration.get_api_key_with_prefix("BearerToken")
            return found

        async def renew() -> None:
            refresh = kubernetes_config.kube_config.refresh_token
            if loader._user is not None:  # noqa: SLF001 - which `refresh` takes for granted
                await refresh(loader, configuration, _RENEWAL_S)

        return Credentials(
            server=configuration.host.rstrip("/"),
            source=source,
            tls=_tls(configuration),
            server_name=configuration.tls_server_name,
            proxy=configuration.proxy,
            namespace=str(loader.current_context["context"].get("namespace") or ""),
            _token=token,
            renew=renew,
        )
    except (kubernetes_config.ConfigException, yaml.YAMLError, OSError, ValueError) as exc:
        said = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        problem = " ".join(said.split()) or type(exc).__name__
        remedy = "set KUBECONFIG, or give --kubeconfig"
        if context and f"name {context} in " in problem:
            problem, remedy = f"it has no context {context!r}", "give another --context"
        raise ConfigurationError(f"{source} cannot be used: {problem}; {remedy}") from exc
    except (TypeError, AttributeError, KeyError) as exc:
        # What the kubernetes package raises for YAML that is not a kubeconfig.
        problem = "it is not a kubeconfig; set KUBECONFIG, or give --kubeconfig"
        raise ConfigurationError(f"{source} cannot be used: {problem}") from exc


def _check_readable(path: str) -> None:
    """Raise if a file cannot be read; the kubernetes package skips such files."""
    for part in path.split(os.pathsep):
        if part:
            Path(part).expanduser().open("rb").close()


def _tls(configuration: Any) -> ssl.SSLContext | None:  # noqa: ANN401 - the kubernetes package has no types
    if not configuration.host.startswith("https"):
        return None
    context = ssl.create_default_context(
        cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data
    )
    _lenient(context)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _lenient(context: ssl.SSLContext) -> ssl.SSLContext:
    """Accept cluster CAs made before 2025: they often lack what Python 3.13 wants of them."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
