"""Callers over mutual TLS, and the replacement of certificates while the server runs."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import trustme

from reserver.errors import ConfigurationError
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import HttpRequest, HttpResponse, ListenerLimits, Paths, text
from reserver.http.tls import Expiries, ServerTls
from reserver.http.tls_files import TlsFiles


class Pki:
    """A CA, and the files of a server with a certificate of that CA."""

    def __init__(self, folder: Path) -> None:
        self.client_ca = folder / "ca.crt"
        self.files = TlsFiles(folder / "tls.crt", folder / "tls.key", self.client_ca)
        self.issue()

    def issue(self) -> None:
        """Replace all files by files of a new CA."""
        self.ca = trustme.CA()
        self.client_ca.write_bytes(self.ca.cert_pem.bytes())
        self.renew()

    def renew(self, ends: datetime | None = None) -> None:
        """Replace the server's certificate by another certificate of the CA."""
        made = self.ca.issue_cert("127.0.0.1", not_after=ends)
        self.files.certificate.write_bytes(made.cert_chain_pems[0].bytes())
        self.files.private_key.write_bytes(made.private_key_pem.bytes())

    def client(
        self, *, signed_by: trustme.CA | None, ends: datetime | None = None
    ) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        if signed_by is not None:
            signed_by.issue_cert("kube-scheduler", not_after=ends).configure_cert(context)
        return context


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@asynccontextmanager
async def served(pki: Pki, *names: str) -> AsyncIterator[str]:
    tls = ServerTls(pki.files, names or ("kube-scheduler",))
    door = Access(ListenerLimits(), Hosts.of("127.0.0.1", ()), lambda _: None, tls)
    async with listening(_paths(), ("127.0.0.1", 0), 1, door) as url:
        yield url


def _paths() -> Paths:
    async def ok(_: HttpRequest) -> HttpResponse:
        return text("ok")

    return {"/": ("GET", ok)}


async def _get(url: str, tls: ssl.SSLContext) -> str:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=tls) as response:
        return await response.text()


async def test_the_end_of_the_certificate_that_a_client_showed_last_is_measured(pki: Pki) -> None:
    tls = ServerTls(pki.files, ("kube-scheduler",))
    expiries = Expiries(())
    expiries.callers = tls.admitted
    soon = datetime(2030, 1, 1, tzinfo=UTC)
    for shown in (soon - timedelta(days=90), soon):
        client = ssl.create_default_context()
        pki.ca.configure_trust(client)
        pki.ca.issue_cert("kube-scheduler", not_after=shown).configure_cert(client)
        door = Access(ListenerLimits(), Hosts.of("127.0.0.1", ()), lambda _: None, tls)
        async with listening(_paths(), ("127.0.0.1", 0), 1, door) as url:
            assert await _get(url, client) == "ok"
    (family,) = expiries.measured()
    ends = {sample.labels["file"]: sample.value for sample in family.samples}
    assert ends == {"client/kube-scheduler": soon.timestamp()}


async def test_only_clients_with_a_certificate_of_the_ca_may_call(pki: Pki) -> None:
    async with served(pki) as url:
        assert url.startswith("https://127.0.0.1:")
        assert await _get(url, pki.client(signed_by=pki.ca)) == "ok"
        for stranger in (None, trustme.CA()):
            with pytest.raises(aiohttp.ClientError):
                await _get(url, pki.client(signed_by=stranger))


async def test_certificates_that_are_replaced_serve_from_the_next_connection_on(pki: Pki) -> None:
    async with served(pki) as url:
        former = pki.client(signed_by=pki.ca)
        assert await _get(url, former) == "ok"
        pki.issue()
        assert await _get(url, pki.client(signed_by=pki.ca)) == "ok"
        with pytest.raises(aiohttp.ClientError):
            await _get(url, former)


async def test_an_expired_certificate_is_refused_until_another_takes_its_place(pki: Pki) -> None:
    """Also after a restart: a certificate that expired before does not stop the start."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    pki.renew(past)
    async with served(pki) as url:
        client = pki.client(signed_by=pki.ca)
        with pytest.raises(aiohttp.ClientConnectorCertificateError, match="has expired"):
            await _get(url, client)
        pki.renew()
        assert await _get(url, client) == "ok"
        with pytest.raises(aiohttp.ClientError):
            await _get(url, pki.client(signed_by=pki.ca, ends=past))


async def test_files_that_are_broken_later_leave_the_former_ones_in_force(pki: Pki) -> None:
    async with served(pki) as url:
        client = pki.client(signed_by=pki.ca)
        pki.files.private_key.write_text("")
        assert await _get(url, client) == "ok"
        pki.files.private_key.unlink()
        assert await _get(url, client) == "ok"


@pytest.mark.parametrize("broken", ["certificate", "private_key", "client_ca"])
@pytest.mark.parametrize("how", ["missing", "empty", "junk"])
def test_files_that_cannot_be_used_are_named(pki: Pki, broken: str, how: str) -> None:
    file: Path = getattr(pki.files, broken)
    if how == "missing":
        file.unlink()
    else:
        file.write_text("" if how == "empty" else "junk\n" * 100_000)
    with pytest.raises(ConfigurationError, match=file.name):
        ServerTls(pki.files, ())


def test_a_key_that_is_not_that_of_the_certificate_is_refused(pki: Pki) -> None:
    other = trustme.CA().issue_cert("127.0.0.1").private_key_pem
    pki.files.private_key.write_bytes(other.bytes())
    with pytest.raises(ConfigurationError, match="TLS cannot be set up from"):
        ServerTls(pki.files, ())
