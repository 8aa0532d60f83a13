"""Clients with mutual TLS, whose connections end once their certificate is not accepted."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from reserver.extender.server import EXTENDER_LIMITS
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import HttpRequest, HttpResponse, ListenerLimits, text
from reserver.http.tls import ServerTls
from reserver.http.tls_files import TlsFiles
from tests.integration.doors.wire import Wire, call
from tests.waiting import until

SCHEDULER = "system:kube-scheduler"
HEALTHZ = call("GET /healthz HTTP/1.1")
SOON_S = 0.05


class Pki:
    """The files of a server, the CA of its clients, and one that is not theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own, self.other = trustme.CA(), trustme.CA()
        self.clients = trustme.CA()
        self.issue()
        self.trust(self.clients)

    @property
    def files(self) -> TlsFiles:
        return TlsFiles(*(self.folder / name for name in ("tls.crt", "tls.key", "ca.crt")))

    def issue(self) -> None:
        """Replace the server's certificate."""
        made = self.own.issue_cert("127.0.0.1")
        made.cert_chain_pems[0].write_to_path(self.folder / "tls.crt")
        made.private_key_pem.write_to_path(self.folder / "tls.key")

    def trust(self, *cas: trustme.CA) -> None:
        """Replace the CA of clients, as the kubelet replaces a Secret's files."""
        new = self.folder / "ca.crt.new"
        new.write_bytes(b"".join(ca.cert_pem.bytes() for ca in cas))
        new.replace(self.folder / "ca.crt")

    def client(
        self, *names: str, cn: str | None = None, ca: trustme.CA | None = None
    ) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.own.configure_trust(context)
        if names or cn:
            (ca or self.clients).issue_cert(*names, common_name=cn).configure_cert(context)
        return context


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@asynccontextmanager
async def serving(
    pki: Pki, *names: str, limits: ListenerLimits = EXTENDER_LIMITS
) -> AsyncIterator[str]:
    async def ok(_: HttpRequest) -> HttpResponse:
        return text("ok")

    tls = ServerTls(pki.files, names or (SCHEDULER,))
    door = Access(limits, Hosts.of("127.0.0.1", ()), lambda _: None, tls)
    async with listening({"/healthz": ("GET", ok)}, ("127.0.0.1", 0), 1.0, door) as url:
        yield url


@asynccontextmanager
async def connected(url: str, tls: ssl.SSLContext) -> AsyncIterator[Wire]:
    address = urlsplit(url)
    opened = await asyncio.open_connection(address.hostname, address.port, ssl=tls)
    connection = Wire(*opened)
    try:
        yield connection
    finally:
        connection.close()


async def answer(url: str, tls: ssl.SSLContext) -> tuple[int, str]:
    """Return status and text of a call; 0 for one who cannot connect."""
    try:
        async with connected(url, tls) as client:
            client.say(HEALTHZ)
            return await client.answer()
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return 0, ""


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
    """Return what a client shows whose certificate has a URI, which trustme knows nothing of."""
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


# Revocation.


def _session(
    url: str, tls: ssl.SSLContext, former: ssl.SSLSession | None
) -> tuple[bytes, bool, ssl.SSLSession | None]:
    """Call over a connection of its own; return the answer, if it was resumed, and the session."""
    address = urlsplit(url)
    with (
        socket.create_connection((address.hostname or "", address.port or 0), 20) as plain,
        tls.wrap_socket(plain, server_hostname="127.0.0.1", session=former) as wrapped,
    ):
        try:
            wrapped.sendall(HEALTHZ)
            got = wrapped.recv(2**16)
        except OSError:  # In TLS 1.3 a client learns only now that it is refused.
            got = b""
        return got, bool(wrapped.session_reused), wrapped.session


async def test_a_session_is_never_resumed(pki: Pki) -> None:
    tls = pki.client(cn=SCHEDULER)
    async with serving(pki) as url:
        first, _, session = await asyncio.to_thread(_session, url, tls, None)
        assert first.startswith(b"HTTP/1.1 200 ")
        assert session is None or not session.has_ticket
        again, is_resumed, _ = await asyncio.to_thread(_session, url, tls, session)
        assert again.startswith(b"HTTP/1.1 200 ")
        assert not is_resumed


async def test_a_session_of_a_client_whose_ca_was_replaced_is_not_resumed(pki: Pki) -> None:
    tls = pki.client(cn=SCHEDULER)
    async with serving(pki) as url:
        _, _, session = await asyncio.to_thread(_session, url, tls, None)
        pki.trust(pki.other)
        assert (await asyncio.to_thread(_session, url, tls, session))[0] == b""
        assert (await answer(url, pki.client(cn=SCHEDULER, ca=pki.other)))[0] == 200


async def test_tls_whose_sessions_can_be_resumed_without_a_ticket_is_not_spoken(pki: Pki) -> None:
    tls = pki.client(cn=SCHEDULER)
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(pki) as url:
        assert (await answer(url, tls))[0] == 0


@pytest.mark.parametrize("what", ["ca", "certificate"])
async def test_a_connection_that_former_files_let_in_is_served_no_more(pki: Pki, what: str) -> None:
    tls = pki.client(cn=SCHEDULER)
    async with serving(pki) as url, AsyncExitStack() as stack:
        caller, idle = [await stack.enter_async_context(connected(url, tls)) for _ in range(2)]
        for client in (caller, idle):
            client.say(HEALTHZ)
            assert (await client.answer())[0] == 200
        pki.trust(pki.other) if what == "ca" else pki.issue()
        caller.say(HEALTHZ)
        status, text = await caller.answer()
        assert status == 403
        assert "reconnect" in text
        assert await caller.all_answers() == b""
        assert await idle.all_answers() == b""


async def test_a_new_connection_ends_those_that_former_files_let_in(pki: Pki) -> None:
    async with serving(pki) as url, connected(url, pki.client(cn=SCHEDULER)) as kept:
        kept.say(HEALTHZ)
        assert (await kept.answer())[0] == 200
        pki.trust(pki.other)
        assert (await answer(url, pki.client(cn=SCHEDULER, ca=pki.other)))[0] == 200
        assert await kept.all_answers() == b""


async def test_a_handshake_from_before_is_worth_nothing_after(pki: Pki) -> None:
    async with serving(pki) as url, connected(url, pki.client(cn=SCHEDULER)) as client:
        pki.trust(pki.other)
        client.say(HEALTHZ)
        assert (await client.answer())[0] == 403


async def test_a_ca_that_is_added_lets_in_new_clients_and_the_old_ones_again(pki: Pki) -> None:
    async with serving(pki) as url:
        pki.trust(pki.clients, pki.other)
        for ca in (pki.clients, pki.other):
            assert (await answer(url, pki.client(cn=SCHEDULER, ca=ca)))[0] == 200


# Handshakes.


async def test_who_does_not_finish_a_handshake_is_let_go(pki: Pki) -> None:
    limits = ListenerLimits(request_s=SOON_S)
    async with serving(pki, limits=limits) as url:
        address = urlsplit(url)
        for said in (b"", b"\x16\x03\x01\x02\x00\x01", HEALTHZ):
            opened = await asyncio.open_connection(address.hostname, address.port)
            client = Wire(*opened)
            client.say(said)
            await client.all_answers()
            client.close()
        assert (await answer(url, pki.client(cn=SCHEDULER)))[0] == 200


async def test_unfinished_handshakes_push_out_each_other_and_not_kube_scheduler(pki: Pki) -> None:
    limits = ListenerLimits(new=8, new_per_peer=4)
    async with serving(pki, limits=limits) as url, AsyncExitStack() as stack:
        kept = await stack.enter_async_context(connected(url, pki.client(cn=SCHEDULER)))
        kept.say(HEALTHZ)
        assert (await kept.answer())[0] == 200
        address = urlsplit(url)
        silent = []
        for number in range(40):
            opened = await asyncio.open_connection(
                address.hostname, address.port, local_addr=(f"127.0.0.{2 + number % 4}", 0)
            )
            silent.append(Wire(*opened))
            stack.callback(silent[-1].close)
        ended = [asyncio.create_task(client.all_answers()) for client in silent]
        await until(lambda: sum(task.done() for task in ended) == len(silent) - limits.new)
        assert (await answer(url, pki.client(cn=SCHEDULER)))[0] == 200
        kept.say(HEALTHZ)
        assert (await kept.answer())[0] == 200
        for task in ended:
            task.cancel()
