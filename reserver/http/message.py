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
        connections: most connections; beyond it, new connections replace idle ones.
        new: most connections that have not yet sent a complete request head.
        new_per_peer: most such connections from one IP address.
        request_s: seconds for a TLS handshake, and for a request from its first byte to its last.
        unread_s: seconds that a client may leave an answer unread.
        idle_s: seconds that a connection may wait for its next request.
        lifetime_s: seconds of a connection, for one request; None for no bound on either.
        headers: most header fields of a request.
        header_bytes: most bytes of one header field, and of the request line.
        bodies: most bytes of a body, by path; other paths accept none.
        queries: whether these paths accept a query string: API servers add their timeout.
        bodies_bytes: most bytes of all bodies that are read and answered at once.
    """

    connections: int = 2048
    new: int = 100
    new_per_peer: int = 50
    request_s: float = 10.0
    unread_s: float = 10.0
    idle_s: float = 120.0  # kube-scheduler closes after 90 s; it must be first, or calls get lost.
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
    """A request, whose body may still be incomplete.

    Attributes:
        method: GET, POST and so on.
        target: path and query of the request line.
        headers: by name in lower case; values of a repeated field are joined by commas (RFC 9110).
        body_bytes: length of the body.
        body: the whole body, once it has arrived; empty before.
        is_last: the client expects no other answer on this connection.
        is_whole: the body has arrived.
        is_wanted: the body is kept.
        peer: IP address of the client.
    """

    __slots__ = (
        "body",
        "body_bytes",
        "headers",
        "is_last",
        "is_wanted",
        "is_whole",
        "method",
        "peer",
        "target",
    )

    def __init__(
        self, method: str, target: str, headers: dict[str, str], *, is_last: bool = False
    ) -> None:
        """Begin a request with its head.

        Raises:
            Malformed: Content-Length is not a number of bytes.
        """
        self.method = method
        self.target = target
        self.headers = headers
        length = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(length):  # `int` refuses thousands of digits.
            raise Malformed(f"Content-Length: {shorten(length)!r} is not a number of bytes")
        self.body_bytes = int(length)
        self.body = b""
        self.is_last = is_last
        self.is_whole = False
        self.is_wanted = True
        self.peer = ""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query string, such as ``verbose``; at most as long as a header field."""
        return self.target.partition("?")[2]


class Reader:
    """The requests of one connection, in their order; httptools calls the `on_` methods."""

    def __init__(
        self,
        limits: ListenerLimits,
        on_head: Callable[[HttpRequest], None],
        on_request: Callable[[HttpRequest], None],
    ) -> None:
        """Report each complete head to `on_head`, and each whole request to `on_request`."""
        self._limits = limits
        self._on_head, self._on_request = on_head, on_request
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: dict[str, str] = {}
        self._count = 0
        self._head_bytes = 0
        self._request: HttpRequest | None = None
        self._parts: list[bytes] = []
        self._has_ended = False
        self.is_within = False
        """Whether a request has begun to arrive, and is incomplete."""

    def feed(self, data: bytes) -> None:
        """Read further bytes.

        Raises:
            Malformed: the bytes are not a request within the limits.
        """
        self._has_ended = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as exc:
            raise (exc.__context__ or exc) from None  # The exception of a method below.
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            raise Malformed(f"not HTTP: {exc}") from exc
        if self._request is None and not self._has_ended:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.headers * self._limits.header_bytes:
                raise Malformed("the head of the request is too large")

    def close(self) -> None:
        """Stop reading, and drop the reference cycle with the parser."""
        del self._parser, self._on_head, self._on_request

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target, self._headers, self._count = b"", {}, 0
        self.is_within = True

    def on_url(self, part: bytes) -> None:
        """Append a part of the request line's target."""
        self._target += part
        if len(self._target) > self._limits.header_bytes:
            raise Malformed("the request line is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field."""
        self._count += 1
        if self._count > self._limits.headers:
            raise Malformed("there are too many header fields")
        most = self._limits.header_bytes
        if len(name) > most or len(value) > most:
            raise Malformed("a header field is too long")
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        before = self._headers.get(key)
        self._headers[key] = text if before is None else f"{before}, {text}"

    def on_headers_complete(self) -> None:
        """Report a complete head."""
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
        self._on_head(self._request)

    def on_body(self, part: bytes) -> None:
        """Append a part of the body."""
        if self._request is not None and self._request.is_wanted:
            self._parts.append(part)

    def on_message_complete(self) -> None:
        """Report a complete request."""
        request, self._request = self._request, None
        self.is_within, self._has_ended = False, True
        if request is not None:
            request.body = b"".join(self._parts)
            request.is_whole = True
            self._on_request(request)


JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class HttpResponse(NamedTuple):
    """An HTTP answer.

    Attributes:
        body: the whole body.
        status: HTTP status.
        content_type: content type of the body.
        is_last: the connection ends with this answer.
        then: called once the answer is on its way.
    """

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = JSON
    is_last: bool = False
    then: Callable[[], None] | None = None


Answered = HttpResponse | Awaitable[HttpResponse]
"""An answer that is ready, or one that the caller awaits."""

Handler = Callable[[HttpRequest], Answered]

Paths = Mapping[str, tuple[str, Handler]]
"""Method and handler by path; a path that ends with a slash also matches one segment below it."""


def text(content: str, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    """Return a plain-text answer."""
    return HttpResponse(content.encode(), status, TEXT)


def error(status: HTTPStatus, message: str, *, is_last: bool = False) -> HttpResponse:
    """Return an answer with an error message, in JSON."""
    return HttpResponse(encode({"error": printable(message)}), status, is_last=is_last)
