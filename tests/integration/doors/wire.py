"""A client that sends any bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_PATIENCE_S = 20


class Wire:
    """A connection to a listener."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def say(self, data: bytes) -> None:
        """Send, whether or not the server reads."""
        self._writer.write(data)

    def pause(self) -> None:
        """Read nothing any more."""
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    async def answer(self) -> tuple[int, str]:
        """Return status, and head and body, of the next answer."""
        async with asyncio.timeout(_PATIENCE_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            length = 0
            for line in head.splitlines():
                name, _, value = line.partition(":")
                length = int(value) if name.lower() == "content-length" else length
            body = await self._reader.readexactly(length)
        return int(head.split()[1]), head + body.decode()

    async def all_answers(self) -> bytes:
        """Return what comes until the listener ends the connection."""
        got = bytearray()
        async with asyncio.timeout(_PATIENCE_S):
            try:
                while chunk := await self._reader.read(2**16):
                    got += chunk
            except ConnectionError:
                pass
        return bytes(got)

    async def ended_while(self, say: Callable[[], bytes]) -> None:
        """Go on talking until the listener ends the connection."""
        ended = asyncio.create_task(self.all_answers())
        while not ended.done():
            self.say(say())
            await asyncio.wait((ended,), timeout=0.005)
        await ended

    def close(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def wire(url: str, peer: str = "127.0.0.1") -> AsyncIterator[Wire]:
    """Connect from an address of this machine."""
    target = urlsplit(url)
    opened = await asyncio.open_connection(target.hostname, target.port, local_addr=(peer, 0))
    connection = Wire(*opened)
    try:
        yield connection
    finally:
        connection.close()


def call(line: str, *headers: str, body: bytes = b"", host: str = "127.0.0.1") -> bytes:
    """Return the bytes of a request."""
    head = [line, f"Host: {host}", *headers]
    if body:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*head, "", "")).encode() + body
