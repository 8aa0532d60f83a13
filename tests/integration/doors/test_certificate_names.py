"""Names in client certificates: only the allowed ones may call."""

from __future__ import annotations

import ssl

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.integration.doors.mutual_tls import SCHEDULER, Pki, answer, serving

# Names.


@pytest.mark.parametrize(
    ("allowed", "names", "cn"),
    [
        (SCHEDULER, (), SCHEDULER),
        (SCHEDULER, ("other.example",), SCHEDULER),
        ("scheduler.example", ("other.example", "scheduler.example"), None),
        ("spiffe://cluster/ns/kube-system/sa/s", (), None),
    ],
    ids=["common-name", "common-name-and-dns", "dns", "uri"],
)
async def test_a_client_with_an_allowed_name_may_call(
    pki: Pki, allowed: str, names: tuple[str, ...], cn: str | None
) -> None:
    async with serving(pki, "another", allowed) as url:
        tls = pki.client(*names, cn=cn) if names or cn else _with_uri(pki, allowed)
        assert (await answer(url, tls))[0] == 200


@pytest.mark.parametrize(
    ("names", "cn"),
    [
        (("worker-1.example",), "system:node:worker-1"),
        (("manager.example",), None),
        ((), "system:kube-scheduler-2"),
        ((), "xsystem:kube-scheduler"),
        ((), "SYSTEM:KUBE-SCHEDULER"),
        ((), "system:kube-scheduler "),
        ((), "system:kube-scheduler,system:node:worker-1"),
        ((), "*"),
        (("*.example",), "system:*"),
        (("someone@system.kube-scheduler",), None),
        (("10.0.0.1",), None),
    ],
)
async def test_a_client_of_the_same_ca_with_another_name_may_not(
    pki: Pki, names: tuple[str, ...], cn: str | None
) -> None:
    async with serving(pki) as url:
        status, text = await answer(url, pki.client(*names, cn=cn))
    assert status == 403
    assert "none that may call (system:kube-scheduler)" in text
    assert "--extender-allowed-name" in text


async def test_a_name_in_the_organisation_is_none(pki: Pki) -> None:
    context = pki.client()
    pki.clients.issue_cert(
        common_name="x", organization_name=SCHEDULER, organization_unit_name=SCHEDULER
    ).configure_cert(context)
    async with serving(pki) as url:
        assert (await answer(url, context))[0] == 403


async def test_a_client_of_another_ca_may_not_whatever_its_name(pki: Pki) -> None:
    async with serving(pki) as url:
        for ca in (pki.other, pki.own):  # That of gRPC clients, and that of the server itself.
            assert (await answer(url, pki.client(cn=SCHEDULER, ca=ca)))[0] == 0
        assert (await answer(url, pki.client()))[0] == 0
        assert (await answer(url, pki.client(cn=SCHEDULER)))[0] == 200


def _with_uri(pki: Pki, uri: str) -> ssl.SSLContext:
    """Return the TLS context of a client with a URI in its certificate; trustme issues none."""
    key = ec.generate_private_key(ec.SECP256R1())
    ca = x509.load_pem_x509_certificate(pki.clients.cert_pem.bytes())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ca.not_valid_before_utc)
        .not_valid_after(ca.not_valid_after_utc)
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=True
        )
        .sign(_private_key(pki.clients), hashes.SHA256())
    )
    file = pki.folder / "uri.pem"
    encoding = serialization.Encoding.PEM
    file.write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(encoding)
    )
    context = pki.client()
    context.load_cert_chain(file)
    return context


def _private_key(ca: trustme.CA) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(ca.private_key_pem.bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key
