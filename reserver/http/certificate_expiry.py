"""Expiry times of the certificates that Reserver serves with, trusts or is shown."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from prometheus_client.core import GaugeMetricFamily, Metric

from reserver.http.tls_files import TlsFiles


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
