"""Mutual TLS for listeners that are not loopback: whoever reaches the extender can bind pods."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from reserver.errors import ConfigurationError
from reserver.server.tls_files import TlsFiles

log = structlog.get_logger(__name__)


_Stamp = tuple[tuple[int, int], ...]


class ServerTls:
    """TLS contexts made from files, and made anew when those are replaced.

    Attributes:
        context: what to listen with.
    """

    def __init__(self, files: TlsFiles) -> None:
        """Read the files.

        Raises:
            ConfigurationError: they cannot be read, or do not belong together.
        """
        self._files = files
        self._stamp = stamped(self._files)
        self._current = self._load()
        self.context = self._load()
        # Called for each handshake, whether or not the client names a server.
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        try:
            stamp = stamped(self._files)
            if stamp != self._stamp:
                self._current, self._stamp = self._load(), stamp
                log.info("certificates read anew")
        except ConfigurationError as exc:  # Half replaced, perhaps: the next handshake looks again.
            log.warning("certificates cannot be read anew, the former ones serve", why=str(exc))
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        files = self._files
        try:
            context.load_cert_chain(files.certificate, files.private_key)
            context.load_verify_locations(files.client_ca)
        except (OSError, ssl.SSLError) as exc:
            names = f"{files.certificate}, {files.private_key}, {files.client_ca}"
            problem = exc.reason if isinstance(exc, ssl.SSLError) else exc.strerror
            raise ConfigurationError(f"TLS cannot be had from {names}: {problem}") from exc
        return context


def stamped(files: TlsFiles) -> _Stamp:
    """Return what changes when one of the files is replaced.

    Raises:
        ConfigurationError: one of them cannot be read.
    """
    try:
        stats = [Path(file).stat() for file in files]
    except OSError as exc:
        raise ConfigurationError(f"{exc.filename} cannot be read: {exc.strerror}") from exc
    return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)
