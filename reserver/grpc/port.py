"""The port of the gRPC API, which replaces its server when the certificate files change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc
import structlog

from reserver.errors import ConfigurationError
from reserver.http.tls import server_context, stamped
from reserver.http.tls_files import TlsFiles

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 0.25
"""Seconds between two checks of the files."""

_LAST_S = 5.0
"""Seconds for which calls on a server with the former certificates may continue."""

_FIRST_REST_S = 0.01
_LAST_REST_S = 1.0
"""First and longest pause before a bind of the former server's port, free within milliseconds."""


class Port:
    """A port and its server, which is replaced by another server with new certificates.

    A gRPC server uses new certificates for new connections, but keeps its old connections. A new
    server has none, and resumes no TLS session of the former server.
    """

    def __init__(
        self,
        address: tuple[str, int],
        made: Callable[[], grpc.aio.Server],
        tls: TlsFiles | None,
    ) -> None:
        """Begin closed; `made` returns a server with its services. Port 0 means any free port."""
        self._host, self._number = address
        self._made = made
        self._tls = tls
        self._stamp = stamped(tls) if tls else None
        self._server: grpc.aio.Server | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """``ADDRESS:PORT``, with an IPv6 address in brackets."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._number}"

    async def open(self) -> None:
        """Start answering.

        Raises:
            ConfigurationError: the port is taken, the address is not this machine's, or the files
                are invalid.
        """
        credentials = _credentials(self._tls) if self._tls else None
        server = self._made()
        try:
            if credentials is None:
                self._number = server.add_insecure_port(self.address)
            else:
                self._number = server.add_secure_port(self.address, credentials)
        except RuntimeError as exc:
            problem = f"--grpc-address: cannot listen on {self.address}"
            raise ConfigurationError(problem) from exc
        await _start(server)
        self._server = server

    async def close(self, drain_s: float) -> None:
        """Stop once open calls have ended, at the latest after `drain_s` seconds."""
        if self._server is not None:
            await self._server.stop(drain_s)
        if self._ending is not None:
            await self._ending

    async def follow_certificates(self) -> None:
        """Replace the server whenever the files change, until cancelled."""
        problem = ""
        while self._tls is not None:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                stamp = stamped(self._tls)
                if stamp == self._stamp:
                    continue
                _credentials(self._tls)
            except ConfigurationError as exc:
                if str(exc) != problem:
                    problem = str(exc)
                    log.warning("certificates cannot be read, the former ones serve", why=problem)
                continue
            self._stamp, problem = stamp, ""
            await self._replace()
            log.info("certificates read again, the gRPC API's connections end")

    async def _replace(self) -> None:
        if self._ending is not None:
            await self._ending
        if self._server is not None:
            self._ending = asyncio.create_task(self._server.stop(_LAST_S))
        rest_s = _FIRST_REST_S
        while True:
            await asyncio.sleep(rest_s)
            try:
                await self.open()
            except ConfigurationError as exc:
                if rest_s >= _LAST_REST_S:
                    log.error("the gRPC API is not served, trying again", why=str(exc))
                rest_s = min(2 * rest_s, _LAST_REST_S)
            else:
                return


async def _start(server: grpc.aio.Server) -> None:
    """Start a server; on cancellation stop it again after the start.

    Cancelling a start half-way breaks gRPC's own loop: it sets the result of a cancelled future,
    and `stop` raises that error again.
    """
    starting = asyncio.ensure_future(server.start())
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await starting
        await server.stop(None)
        raise


def _credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Return TLS credentials from files.

    Raises:
        ConfigurationError: the files cannot be read, or do not belong together.
    """
    server_context(files)
    try:
        key, chain = files.private_key.read_bytes(), files.certificate.read_bytes()
        ca = files.client_ca.read_bytes() if files.client_ca else None
    except OSError as exc:
        raise ConfigurationError(f"{exc.filename} cannot be read: {exc.strerror}") from exc
    return grpc.ssl_server_credentials([(key, chain)], ca, require_client_auth=ca is not None)
