"""Kubeconfigs, as the kubernetes package reads them; read again when their files change.

A recreated service account never gives its old token any rights: after replacing the token file or
the kubeconfig no restart of Reserver is needed.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
import yaml
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import Configuration

from reserver.errors import ConfigurationError
from reserver.k8s.credentials import Credentials, lenient

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 2.0
"""Seconds between two checks of the files."""

_RENEWAL_S = 60
"""Seconds between two checks of a credential that expires."""

_FILES = ("tokenFile", "client-certificate", "client-key")
"""Fields of a user that name files; each has an alternative field with the content."""

_Stamps = dict[Path, tuple[int, int, int]]


class Kubeconfig:
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
        refresh = kubernetes_config.kube_config.refresh_token
        if self._loader._user is not None:  # noqa: SLF001 - `refresh` does not check this
            await refresh(self._loader, self._configuration, _RENEWAL_S)

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
