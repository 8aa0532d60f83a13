"""The certificates of the webhooks: made, recognized, and replaced while calls go on."""

import asyncio
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from reserver.errors import ConfigurationError
from reserver.http.tls_files import TlsFiles
from reserver.webhook.certificate_secret import ServingPair
from reserver.webhook.certificates import LIFETIME, CertificateMaker, WebhookTls
from tests.builders import NOW

NAMES = ("reserver-webhook.reserver-system.svc", "127.0.0.1")
MAKER = CertificateMaker(NAMES)
DAYS = LIFETIME.days * 86400.0


def test_a_certificate_is_due_after_two_thirds_of_its_life() -> None:
    pair = MAKER.make(NOW)
    assert not MAKER.is_due(pair, NOW)
    assert not MAKER.is_due(pair, NOW + DAYS * 2 / 3 - 60)
    assert MAKER.is_due(pair, NOW + DAYS * 2 / 3 + 60)


def test_what_is_for_others_or_broken_is_due() -> None:
    pair, other = MAKER.make(NOW), MAKER.make(NOW)
    assert CertificateMaker(("other.svc",)).is_due(pair, NOW)
    assert MAKER.is_due(pair._replace(private_key=other.private_key), NOW)
    assert MAKER.is_due(ServingPair(b"x", b"y", b"z"), NOW)


def test_each_has_a_ca_of_its_own_that_can_sign_nothing_further() -> None:
    pair, other = MAKER.make(NOW), MAKER.make(NOW)
    assert pair.ca != other.ca
    ca = x509.load_pem_x509_certificate(pair.ca)
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    assert b"PRIVATE KEY" not in pair.ca + pair.certificate
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    certificate.verify_directly_issued_by(ca)


async def called(tls: WebhookTls, ca: bytes, name: str = NAMES[0]) -> bytes:
    """Return the certificate of a server to a client that trusts a CA."""
    server = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls.context
    )
    trusting = ssl.create_default_context(cadata=ca.decode())
    port = server.sockets[0].getsockname()[1]
    async with server:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting, server_hostname=name
        )
        shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    return shown


def now_pair() -> ServingPair:
    import time  # noqa: PLC0415 - the only test that has to be of today

    return MAKER.make(time.time())


@pytest.mark.parametrize("name", NAMES)
async def test_it_is_served_to_who_trusts_its_ca(name: str) -> None:
    tls, pair = WebhookTls(None), now_pair()
    tls.serve(pair)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    shown = await called(tls, pair.ca, name)
    assert x509.load_der_x509_certificate(shown) == certificate


async def test_another_one_is_served_by_the_same_context() -> None:
    tls, first, second = WebhookTls(None), now_pair(), now_pair()
    tls.serve(first)
    context = tls.context
    tls.serve(second)
    assert tls.context is context
    with pytest.raises(ssl.SSLCertVerificationError):
        await called(tls, first.ca)
    assert await called(tls, first.ca + second.ca)
    assert tls.refused_name(None) is None


async def test_files_are_read_again_once_they_are_replaced(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    with pytest.raises(ConfigurationError):
        WebhookTls(files)
    first, second = now_pair(), now_pair()

    def write(pair: ServingPair) -> None:
        files.certificate.write_bytes(pair.certificate)
        files.private_key.write_bytes(pair.private_key)

    write(first)
    tls = WebhookTls(files)
    assert await called(tls, first.ca)
    files.certificate.write_bytes(second.certificate)
    assert await called(tls, first.ca)  # Half replaced: the former one serves.
    write(second)
    assert await called(tls, second.ca)
