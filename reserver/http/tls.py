"""Mutual TLS, as every client of the extender can bind pods, and expiry of certificates."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric

from reserver.errors import ConfigurationError
from reserver.http.tls_files import TlsFiles

log = structlog.get_logger(__name__)


_Stamp = tuple[tuple[int, int], ...]


class ServerTls:
    """The clients that may connect: a TLS context from files, read again when these are replaced.

    Sessions are not resumed, so each connection presents its certificate. `context` changes as soon
    as the files do, so that connections of an older context are recognized.

    Attributes:
        admitted: by allowed name the expiry of its last certificate, as `notAfter` of
            `ssl.SSLSocket.getpeercert`.
    """

    def __init__(self, files: TlsFiles, allowed_names: Collection[str] | None) -> None:
        """Read the files; a client's certificate must have one of the allowed names, if not None.

        Raises:
            ConfigurationError: a file cannot be read, or key and certificate do not match.
        """
        self._files = files
        self.admitted: dict[str, str] = {}
        self._allowed = None if allowed_names is None else frozenset(allowed_names)
        self._stamp = stamped(files)
        self._context = server_context(files)
        self._problem = ""

    @property
    def context(self) -> ssl.SSLContext:
        """TLS context of the current files; the older context while they are half replaced."""
        try:
            stamp = stamped(self._files)
            if stamp != self._stamp:
                self._context, self._stamp = server_context(self._files), stamp
                self._problem = ""
                log.info("certificates read again")
        except ConfigurationError as exc:  # The next connection tries again.
            if str(exc) != self._problem:
                self._problem = str(exc)
                log.warning("certificates cannot be read, the former ones serve", why=self._problem)
        return self._context

    def refused_name(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Return the reason why a certificate (`getpeercert`) may not call; None if it may."""
        if self._allowed is None:
            return None
        names = tuple(_names(certificate or {}))
        if certificate and (known := self._allowed.intersection(names)):
            self.admitted |= dict.fromkeys(known, certificate["notAfter"])
            return None
        shown = ", ".join(repr(name[:100]) for name in names[:5]) or "no name"
        valid = ", ".join(sorted(self._allowed))
        return (
            f"the client's certificate has {shown}, and none that may call ({valid}); give it one "
            "of these, or start reserver with --extender-allowed-name"
        )


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a TLS context made from files.

    Raises:
        ConfigurationError: a file cannot be read, or key and certificate do not match.
    """
    context = bare_context()
    load(context, files)
    return context


def bare_context() -> ssl.SSLContext:
    """Return a TLS context without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # TLS 1.3 resumes sessions with tickets only, and no ticket is issued.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    return context


def load(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Load files into a TLS context, for new connections.

    Raises:
        ConfigurationError: a file cannot be read, or key and certificate do not match.
    """
    try:
        context.load_cert_chain(files.certificate, files.private_key)
        if files.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(files.client_ca)
    except (OSError, ssl.SSLError) as exc:
        names = ", ".join(str(file) for file in files if file)
        problem = exc.reason if isinstance(exc, ssl.SSLError) else exc.strerror
        raise ConfigurationError(f"TLS cannot be set up from {names}: {problem}") from exc


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the common names, DNS names and URIs of a certificate."""
    for part in certificate.get("subject", ()):
        yield from (value for kind, value in part if kind == "commonName")
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in ("DNS", "URI"):
            yield value


def stamped(files: TlsFiles) -> _Stamp:
    """Return change time and inode of each file, which change when a file is replaced.

    Raises:
        ConfigurationError: a file cannot be read.
    """
    try:
        stats = [file.stat() for file in files if file]
    except OSError as exc:
        raise ConfigurationError(f"{exc.filename} cannot be read: {exc.strerror}") from exc
    return tuple((stat.st_ctime_ns, stat.st_ino) for stat in stats)


class Expiries:
    """Expiry of certificates.

    Attributes:
        callers: by name of a client the expiry of its certificate (`ServerTls.admitted`).
    """

    def __init__(self, served: Iterable[TlsFiles | None]) -> None:
        """Read these files at each collection of metrics, as they may be replaced at any time."""
        in_use = (
            file for files in served if files for file in (files.certificate, files.client_ca)
        )
        self._files = tuple(dict.fromkeys(file for file in in_use if file))
        self._kept: dict[str, bytes] = {}
        self.callers: Mapping[str, str] = {}
        if self._files:  # Imports cryptography now, and not while calls are decided.
            list(self.measured())

    def keep(self, name: str, pem: bytes) -> None:
        """Add a certificate that Reserver serves from now on without a file."""
        self._kept[name] = pem

    def measured(self) -> Iterator[Metric]:
        """Yield the earliest expiry among the certificates of each file, in unix seconds.

        A file that cannot be read is left out: the older certificates serve, and the log has the
        reason.
        """
        family = GaugeMetricFamily(
            "reserver_certificate_expiry_timestamp_seconds",
            "Expiry of the first certificate of a file, or of a client, in unix seconds.",
            labels=("file",),
        )
        for name, pem in self._written():
            with suppress(ValueError):
                family.add_metric((name,), _expiry(pem))
        for name, end in self.callers.items():
            family.add_metric((f"client/{name}",), ssl.cert_time_to_seconds(end))
        yield family

    def _written(self) -> Iterator[tuple[str, bytes]]:
        for file in self._files:
            try:
                yield str(file), file.read_bytes()
            except OSError:
                continue
        yield from self._kept.items()


def _expiry(pem: bytes) -> float:
    """Return the earliest expiry among certificates, in unix seconds.

    Raises:
        ValueError: there is no certificate, or one cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415 - most installations serve without TLS

    return min(
        each.not_valid_after_utc for each in x509.load_pem_x509_certificates(pem)
    ).timestamp()
