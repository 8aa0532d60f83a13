"""A server with mutual TLS, its certificates, and clients with theirs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import trustme

from reserver.extender.server import EXTENDER_LIMITS
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from reserver.http.message import HttpRequest, HttpResponse, ListenerLimits, text
from reserver.http.tls import ServerTls
from reserver.http.tls_files import TlsFiles
from tests.integration.doors.wire import Wire, call

SCHEDULER = "system:kube-scheduler"
HEALTHZ = call("GET /healthz HTTP/1.1")


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
