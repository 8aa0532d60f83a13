"""Mutual TLS, as everyone who may call the extender can bind pods, and expiry of certificates."""

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
    """Who may connect: a TLS context made from files, and again when the files are replaced.

    It guarantees that sessions are not resumed, so each connection shows its certificate, and that
    `context` changes as soon as the files do, so connections of a former one are recognized.

    Attributes:
        admitted: by allowed name the end of the certificate that was shown last, as `notAfter`
            of `ssl.SSLSocket.getpeercert`.
    """

    def __init__(self, files: TlsFiles, allowed_names: Collection[str]) -> None:
        """Read the files; a client's certificate must have one of the allowed names.

        Raises:
            ConfigurationError: they cannot be read, or do not belong together.
        """
        self._files = files
        self.admitted: dict[str, str] = {}
        self._allowed = frozenset(allowed_names)
        self._stamp = stamped(files)
        self._context = server_context(files)
        self._told = ""

    @property
    def context(self) -> ssl.SSLContext:
        """The context of the current files; the former one while they are half replaced."""
        try:
            stamp = stamped(self._files)
            if stamp != self._stamp:
                self._context, self._stamp = server_context(self._files), stamp
                self._told = ""
                log.info("certificates read again")
        except ConfigurationError as exc:  # The next connection looks again.
            if str(exc) != self._told:
                self._told = str(exc)
                log.warning("certificates cannot be read, the former ones serve", why=self._told)
        return self._context

    def refused_name(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Return why the owner of a certificate (`getpeercert`) may not call; None if they may."""
        names = tuple(_names(certificate or {}))
        if certificate and (known := self._allowed.intersection(names)):
            self.admitted |= dict.fromkeys(known, certificate["notAfter"])
            return None
        shown = ", ".join(repr(name[:100]) for name in names[:5]) or "no name"
        wanted = ", ".join(sorted(self._allowed))
        return (
            f"the client's certificate has {shown}, and none that may call ({wanted}); give it one "
            "of these, or start reserver with --extender-allowed-name"
        )


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a TLS context made from files.

    Raises:
        ConfigurationError: they cannot be read, or do not belong together.
    """
    context = bare_context()
    load(context, files)
    return context


def bare_context() -> ssl.SSLContext:
    """Return a TLS context without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # In 1.3 a session is resumed with a ticket only, and there is none.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    return context


def load(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Have a TLS context serve with files from now on.

    Raises:
        ConfigurationError: they cannot be read, or do not belong together.
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
    """Return what changes when one of the files is replaced.

    Raises:
        ConfigurationError: one of them cannot be read.
    """
    try:
        stats = [file.stat() for file in files if file]
    except OSError as exc:
        raise ConfigurationError(f"{exc.filename} cannot be read: {exc.strerror}") from exc
    return tuple((stat.st_ctime_ns, stat.st_ino) for stat in stats)


class Expiries:
    """When certificates expire.

    Attributes:
        callers: by name of a client the end of its certificate (`ServerTls.admitted`).
    """

    def __init__(self, served: Iterable[TlsFiles | None]) -> None:
        """Look at these files whenever somebody asks: they may be replaced at any time."""
        in_use = (
            file for files in served if files for file in (files.certificate, files.client_ca)
        )
        self._files = tuple(dict.fromkeys(file for file in in_use if file))
        self._kept: dict[str, bytes] = {}
        self.callers: Mapping[str, str] = {}
        if self._files:  # What that takes is imported now, and not while calls are decided.
            list(self.measured())

    def keep(self, name: str, pem: bytes) -> None:
        """Note a certificate that Reserver serves with from now on, and that no file has."""
        self._kept[name] = pem

    def measured(self) -> Iterator[Metric]:
        """Yield the moment, in unix seconds, at which the first certificate of each file expires.

        A file that cannot be read now is left out: the former certificates serve, and the log says
        why.
        """
        family = GaugeMetricFamily(
            "reserver_certificate_expiry_timestamp_seconds",
            "When the first certificate of a file, or of a client, expires, in unix seconds.",
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
    """Return when the first certificate expires, in unix seconds.

    Raises:
        ValueError: there is none, or one cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415 - most Reservers serve without TLS

    return min(
        each.not_valid_after_utc for each in x509.load_pem_x509_certificates(pem)
    ).timestamp()
