"""A proxy with TLS is trusted by the CAs of the system."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from hack.programs import done

ASKS = """
import asyncio, sys
from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.credentials import Credentials

async def nobody():
    return None

async def main():
    proxy = sys.argv[1]
    served = Credentials("http://api.test", "a test", None, None, proxy, "", nobody)
    async with ApiClient(served) as client:
        try:
            print((await client.get("/version")).decode())
        except ApiError as exc:
            print(exc)

asyncio.run(main())
"""


@pytest.fixture
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def proxy(ca: trustme.CA) -> AsyncIterator[str]:
    """A proxy with TLS, which answers in the place of a server without."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(tls)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nasked")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_the_systems_cas_are_trusted_and_no_others(
    proxy: str, ca: trustme.CA, tmp_path: Path
) -> None:
    async def said(trusted: trustme.CA) -> str:
        file = tmp_path / "ca.pem"
        file.write_bytes(trusted.cert_pem.bytes())
        system = {"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": str(tmp_path / "none")}
        command = (sys.executable, "-c", ASKS, proxy)
        told = await asyncio.to_thread(done, *command, env=os.environ | system)
        assert not told.returncode, told.stderr
        return str(told.stdout)

    assert await said(ca) == "asked\n"
    assert "certificate verify failed" in await said(trustme.CA())
