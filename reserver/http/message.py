"""HTTP requests, parsed from the bytes of a connection within its limits, and their answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple

import httptools

from reserver.cluster.quantity import shorten
from reserver.k8s.objects.objects import encode
from reserver.printable import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """Bounds on what the clients of a listener may use.

    Attributes:
        connections: in all; beyond it, idle connections give way to new ones.
        new: connections that have not yet sent a complete request head.
        new_per_peer: such connections from one IP address.
        request_s: seconds for a TLS handshake, and for a request from its first byte to its last.
        unread_s: seconds that a client may leave an answer unread.
        idle_s: seconds that a connection may wait for its next request.
        lifetime_s: seconds that it may last, for one request; None for no bound on either.
        headers: header fields of a request.
        header_bytes: bytes of one header field, and of the request line.
        bodies: bytes of a body, by path; other paths accept none.
        queries: whether a path may be followed by a query there: API servers add their timeout.
        bodies_bytes: bytes of all bodies that are read and answered at once.
    """

    connections: int = 2048
    new: int = 100
    new_per_peer: int = 50
    request_s: float = 10.0
    unread_s: float = 10.0
    idle_s: float = 120.0  # kube-scheduler closes after 90: if it closes first, no call is lost.
    lifetime_s: float | None = None
    headers: int = 32
    header_bytes: int = 4096
    bodies: dict[str, int] = field(default_factory=dict)
    queries: bool = False
    bodies_bytes: int = 64 * 2**20


_LENGTH = re.compile(r"0|[1-9][0-9]{0,18}")
_VERSIONS = ("1.0", "1.1")


class Malformed(Exception):
    """The bytes are not a request, or its head is too large."""


class HttpRequest:
    """A request, whose body may still be coming.

    Attributes:
        method: GET, POST and so on.
        target: what the request line asks for.
        headers: by name in lower case; what comes more than once is joined by commas (RFC 9110).
        body_bytes: how long its body is.
        body: all of it, once it has come.
        is_last: the client wants no other answer on this connection.
        is_whole: its body has come.
        is_wanted: its body is kept.
    """

    __slots__ = (
        "body",
        "body_bytes",
        "headers",
        "is_last",
        "is_wanted",
        "is_whole",
        "method",
        "target",
    )

    def __init__(
        self, method: str, target: str, headers: dict[str, str], *, is_last: bool = False
    ) -> None:
        """Note its head.

        Raises:
            Malformed: its Content-Length is no number of bytes.
        """
        self.method = method
        self.target = target
        self.headers = headers
        length = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(length):  # Of thousands of digits `int` makes no number.
            raise Malformed(f"Content-Length: {shorten(length)!r} is not a number of bytes")
        self.body_bytes = int(length)
        self.body = b""
        self.is_last = is_last
        self.is_whole = False
        self.is_wanted = True

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What follows the path, such as ``verbose``; it is as long as a header field at most."""
        return self.target.partition("?")[2]


class Reader:
    """The requests of one connection, in their order; httptools (llhttp) calls its methods."""

    def __init__(
        self,
        limits: ListenerLimits,
        came: Callable[[HttpRequest], None],
        whole: Callable[[HttpRequest], None],
    ) -> None:
        """Read within limits; report each head that has come, and each whole request."""
        self._limits = limits
        self._came, self._whole = came, whole
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: dict[str, str] = {}
        self._count = 0
        self._head_bytes = 0
        self._request: HttpRequest | None = None
        self._parts: list[bytes] = []
        self._has_ended = False
        self.is_within = False
        """Whether a request has begun to come, and not all of it is there."""

    def feed(self, data: bytes) -> None:
        """Read on.

        Raises:
            Malformed: it is no request.
        """
        self._has_ended = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as exc:
            raise (exc.__context__ or exc) from None  # What a method below has raised.
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            raise Malformed(f"not HTTP: {exc}") from exc
        if self._request is None and not self._has_ended:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.headers * self._limits.header_bytes:
                raise Malformed("the head of the request is too large")

    def close(self) -> None:
        """Read no more; nothing refers to itself any longer."""
        del self._parser, self._came, self._whole

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target, self._headers, self._count = b"", {}, 0
        self.is_within = True

    def on_url(self, part: bytes) -> None:
        """Take a part of the request line's target."""
        self._target += part
        if len(self._target) > self._limits.header_bytes:
            raise Malformed("the request line is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header field."""
        self._count += 1
        if self._count > self._limits.headers:
            raise Malformed("there are too many header fields")
        most = self._limits.header_bytes
        if len(name) > most or len(value) > most:
            raise Malformed("a header field is too long")
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._headers.get(key)
        self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Tell that a head has come."""
        self._head_bytes = 0
        self._parts = []
        if (version := self._parser.get_http_version()) not in _VERSIONS:
            raise Malformed(f"HTTP/{version} is not spoken here; send HTTP/1.1")
        self._request = HttpRequest(
            self._parser.get_method().decode(),
            self._target.decode("latin-1"),
            self._headers,
            is_last=not self._parser.should_keep_alive(),
        )
        self._came(self._request)

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""
        if self._request is not None and self._request.is_wanted:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        """Tell that a request has come."""
        request, self._request = self._request, None
        self.is_within, self._has_ended = False, True
        if request is not None:
            request.body = b"".join(self._parts)
            request.is_whole = True
            self._whole(request)


JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class HttpResponse(NamedTuple):
    """An HTTP answer.

    Attributes:
        body: all of it.
        status: of HTTP.
        content_type: of the body.
        is_last: the connection ends with it.
        then: is called once it is on its way.
    """

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = JSON
    is_last: bool = False
    then: Callable[[], None] | None = None


Answered = HttpResponse | Awaitable[HttpResponse]
"""An answer that is there at once, or one that takes waiting."""

Handler = Callable[[HttpRequest], Answered]

Paths = Mapping[str, tuple[str, Handler]]
"""Method and handler by path; a path that ends with a slash stands for what is one below, too."""


def text(said: str, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    """Return a text as an answer."""
    return HttpResponse(said.encode(), status, TEXT)


def error(status: HTTPStatus, message: str, *, is_last: bool = False) -> HttpResponse:
    """Return an answer that says what is wrong."""
    return HttpResponse(encode({"error": printable(message)}), status, is_last=is_last)
