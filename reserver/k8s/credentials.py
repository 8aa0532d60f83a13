"""The API server's address and Reserver's credentials: kubeconfig or in-cluster service account.

The kubernetes package reads kubeconfigs with every kind of user that it supports (token, token
file, client certificate, exec plugin, OIDC), and renews expiring credentials. A service account is
two files: importing the package for them would take a fifth of the startup time.

Kubeconfigs are read again when their files change: a recreated service account never gives its old
token any rights, and after replacing the token file or the kubeconfig no restart is needed.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from reserver.errors import ConfigurationError

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 2.0
"""Seconds between two checks of a kubeconfig's files."""

_RENEWAL_S = 60
"""Seconds between two checks of a credential that expires."""

_FILES = ("tokenFile", "client-certificate", "client-key")
"""Fields of a user that name files; each has an alternative field with the content."""

_Stamps = dict[Path, tuple[int, int, int]]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which the kubelet keeps token and CA of a pod's service account."""


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
    return await _Kubeconfig(path, context).credentials()


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


class _Kubeconfig:
    """A kubeconfig, with the credentials of one of its contexts."""

    def __init__(self, path: str, context: str) -> None:
        """Set the file, or several as in $KUBECONFIG; context "" is the current context."""
        self._path = path
        self._context = context
        self._stamps: _Stamps = {}

    async def credentials(self) -> Credentials:
        """Return the current credentials.

        Raises:
            ConfigurationError: they cannot be read.
        """
        await self._load()
        self._tls = _tls(self._configuration)
        return Credentials(
            server=self._configuration.host.rstrip("/"),
            source=self._source,
            tls=self._tls,
            server_name=self._configuration.tls_server_name,
            proxy=self._configuration.proxy,
            namespace=str(self._loader.current_context["context"].get("namespace") or ""),
            _token=self._token,
            renew=self._renew,
        )

    @property
    def _source(self) -> str:
        return f"kubeconfig {self._path}"

    async def _token(self) -> str | None:
        found: str | None = await self._configuration.get_api_key_with_prefix("BearerToken")
        return found

    async def _renew(self) -> None:
        """Follow the files and the exec plugin until cancelled."""
        while True:
            refreshing = asyncio.create_task(self._refresh())
            try:
                while self._stat() == self._stamps:  # noqa: ASYNC110 - files raise no events
                    await asyncio.sleep(LOOK_EVERY_S)
            finally:
                refreshing.cancel()
            try:
                await self._replace()
            except ConfigurationError as exc:
                log.error("credentials cannot be read again, the former stay", why=str(exc))

    async def _refresh(self) -> None:
        from kubernetes.aio.config.kube_config import refresh_token

        if self._loader._user is not None:  # noqa: SLF001 - `refresh_token` does not check this
            await refresh_token(self._loader, self._configuration, _RENEWAL_S)

    async def _replace(self) -> None:
        server = self._configuration.host
        await self._load()
        if self._tls is not None:
            _equip(self._tls, self._configuration)
        if self._configuration.host != server:
            log.warning("the kubeconfig names another API server: restart Reserver to follow it")
        log.info("credentials read again", source=self._source)

    async def _load(self) -> None:
        """Read the files; if that fails, the older credentials stay."""
        import yaml
        from kubernetes.aio import config as kubernetes_config
        from kubernetes.aio.client import Configuration

        self._stamps = self._stat()
        configuration = Configuration()
        try:
            _check_readable(self._path)
            self._loader = await kubernetes_config.load_kube_config(
                config_file=self._path,
                context=self._context or None,
                client_configuration=configuration,
                persist_config=False,
            )
            _tls(configuration)
        except (kubernetes_config.ConfigException, yaml.YAMLError, OSError, ValueError) as exc:
            message = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            problem = " ".join(message.split()) or type(exc).__name__
            remedy = "set KUBECONFIG, or give --kubeconfig"
            if self._context and f"name {self._context} in " in problem:
                problem = f"it has no context {self._context!r}"
                remedy = "give another --context"
            raise ConfigurationError(f"{self._source} cannot be used: {problem}; {remedy}") from exc
        except (TypeError, AttributeError, KeyError) as exc:
            # The kubernetes package raises these for YAML that is not a kubeconfig.
            problem = "it is not a kubeconfig; set KUBECONFIG, or give --kubeconfig"
            raise ConfigurationError(f"{self._source} cannot be used: {problem}") from exc
        self._configuration = configuration
        self._stamps = self._stat() | self._stamps  # A file may have changed during the read.

    def _stat(self) -> _Stamps:
        found = {}
        for path in self._files():
            with suppress(OSError):
                stat = path.stat()
                found[path] = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        return found

    def _files(self) -> Iterator[Path]:
        yield from (Path(part).expanduser() for part in self._path.split(os.pathsep) if part)
        user = getattr(getattr(self, "_loader", None), "_user", None)
        for field in _FILES:
            if user is not None and user.safe_get(field):
                yield Path(user.path).expanduser().parent / user[field]


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
    lenient(context)
    _equip(context, configuration)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _equip(context: ssl.SSLContext, configuration: Any) -> None:  # noqa: ANN401 - as above
    """Make new connections present the client certificate, and accept the CA."""
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if configuration.ssl_ca_cert:
        context.load_verify_locations(cafile=configuration.ssl_ca_cert)
