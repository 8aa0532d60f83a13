"""A client with next to no cost of its own: one kept connection, prepared requests."""

import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from hack.bench.documents import encode

_LARGEST_ANSWER = 4 * 2**20
_HEADER_END = b"\r\n\r\n"
_CHUNKS_END = b"0\r\n\r\n"
_TIMEOUT_S = 30.0


def request(path: str, document: Mapping[str, Any]) -> bytes:
    """Return a POST in the form of Go's HTTP client, and so of kube-scheduler."""
    body = encode(document)
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "User-Agent: Go-http-client/1.1",
        f"Content-Length: {len(body)}",
        "Content-Type: application/json",
        "Accept-Encoding: gzip",
    )
    return "\r\n".join(lines).encode() + _HEADER_END + body


def filter_request(path: str, pod: Mapping[str, Any], names: list[str]) -> bytes:
    """Return a Filter call of a kube-scheduler with nodeCacheCapable."""
    return request(path, {"Pod": pod, "Nodes": None, "NodeNames": names})


def ready_get(path: str) -> bytes:
    """Return a GET."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class BadAnswerError(Exception):
    """The answer's status is not 200, or it has no body."""


class Client:
    """One kept connection to a server on loopback, as a context manager."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(_LARGEST_ANSWER)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, ready: bytes) -> bytes:
        """Send a request and return the body of its answer, including the framing of chunks.

        Raises:
            BadAnswerError: the status is not 200.
        """
        self._socket.sendall(ready)
        view = memoryview(self._buffer)
        received = head = 0
        length: int | None = None
        while True:
            count = self._socket.recv_into(view[received:])
            if not count:
                raise BadAnswerError("the server closed the connection")
            received += count
            if not head and (at := self._buffer.find(_HEADER_END, 0, received)) >= 0:
                head = at + len(_HEADER_END)
                length = _body_length(bytes(view[:head]))
            if head and (
                self._buffer.endswith(_CHUNKS_END, head, received)
                if length is None
                else received >= head + length
            ):
                return bytes(view[head:received])


def _body_length(header: bytes) -> int | None:
    """Return the length of a body; None if it comes in chunks."""
    lines = header.decode("latin-1").lower().split("\r\n")
    if " 200 " not in lines[0]:
        raise BadAnswerError(lines[0])
    fields = (line.partition(":") for line in lines)
    return next((int(value) for name, _, value in fields if name == "content-length"), None)
