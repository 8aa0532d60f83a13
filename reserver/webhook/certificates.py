"""Makes the certificates of the webhooks, each with its own CA, and serves them.

The key of the CA is never stored. A certificate is replaced without interrupting calls.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reserver.errors import ConfigurationError
from reserver.http.tls import bare_context, load, server_context, stamped
from reserver.http.tls_files import TlsFiles
from reserver.webhook.certificate_secret import ServingPair

LIFETIME = timedelta(days=90)
"""The lifetime of a certificate, which is replaced after two thirds of it."""

_EARLIER = timedelta(hours=1)
"""The time by which its validity begins earlier, for API servers with slow clocks."""


class CertificateMaker:
    """Makes certificates for given names, and checks whether one must be replaced."""

    def __init__(self, names: Sequence[str]) -> None:
        """Make certificates for DNS names and IP addresses."""
        self._names = tuple(names)

    def make(self, now: float) -> ServingPair:
        """Return a new certificate with a CA of its own, valid from `now` (unix seconds) on."""
        begins = datetime.fromtimestamp(now, UTC)
        ca_key, key = (
            ec.generate_private_key(ec.SECP256R1()),
            ec.generate_private_key(ec.SECP256R1()),
        )
        # A unique name: TLS clients confuse two CAs with the same name.
        ca_name = _named(f"reserver-webhook-ca-{x509.random_serial_number():x}")
        ca = (
            _builder(ca_name, ca_name, ca_key, begins)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(ca_key, hashes.SHA256())
        )
        certificate = (
            _builder(_named("reserver-webhook"), ca_name, key, begins)
            .add_extension(
                x509.SubjectAlternativeName(list(map(_general, self._names))), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        return ServingPair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
            ca.public_bytes(serialization.Encoding.PEM),
        )

    def is_due(self, pair: ServingPair, now: float) -> bool:
        """Return whether a certificate must be replaced: it expires soon or has other names."""
        try:
            certificate = x509.load_pem_x509_certificate(pair.certificate)
            key = serialization.load_pem_private_key(pair.private_key, password=None)
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except (ValueError, TypeError, x509.ExtensionNotFound):
            return True
        if key.public_key() != certificate.public_key():
            return True
        if set(names.value) != set(map(_general, self._names)):
            return True
        due = certificate.not_valid_after_utc - LIFETIME / 3
        return datetime.fromtimestamp(now, UTC) >= due


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begins: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _EARLIER)
        .not_valid_after(begins + LIFETIME)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


log = structlog.get_logger(__name__)


class WebhookTls:
    """The TLS context of the webhooks, with files or with a certificate made by Reserver.

    API servers need no client certificate. So unlike the extender's (`http.tls`) there is a single
    context, into which each new certificate is loaded: new connections use it, and calls on open
    connections continue.
    """

    def __init__(self, files: TlsFiles | None) -> None:
        """Serve with files; with None, `serve` must provide a certificate.

        Raises:
            ConfigurationError: the files cannot be read, or do not belong together.
        """
        self._files = files
        self._context = bare_context()
        self._problem = ""
        if files is not None:
            self._stamp = stamped(files)
            load(self._context, files)

    @property
    def context(self) -> ssl.SSLContext:
        """The context, with replaced files loaded if they are valid."""
        if self._files is not None:
            try:
                stamp = stamped(self._files)
                if stamp != self._stamp:
                    server_context(self._files)  # A failed load would leave no certificate.
                    load(self._context, self._files)
                    self._stamp, self._problem = stamp, ""
                    log.info("certificates read again")
            except ConfigurationError as exc:  # The next connection checks again.
                if str(exc) != self._problem:
                    self._problem = str(exc)
                    log.warning(
                        "certificates cannot be read, the former ones serve", why=self._problem
                    )
        return self._context

    def serve(self, pair: ServingPair) -> None:
        """Load another certificate for new connections."""
        # ssl reads files only, and there may be no file system to write to.
        descriptor = os.memfd_create("reserver-webhook")
        try:
            os.write(descriptor, pair.certificate + pair.private_key)
            self._context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)

    def refused_name(self, certificate: Mapping[str, Any] | None) -> str | None:  # noqa: ARG002 - as ServerTls
        """Return None: every client may call, and answers show nothing of other tenants."""
        return None
