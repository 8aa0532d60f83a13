"""What an HTTP listener is asked and answers, and who answers which path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

import structlog

from reserver.errors import InvalidInput
from reserver.printable import printable
from reserver.quarantine import take_note
from reserver.wire.k8s.objects import encode

log = structlog.get_logger(__name__)

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class Request:
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
        """Note its head; a Content-Length has to be a number."""
        self.method = method
        self.target = target
        self.headers = headers
        self.body_bytes = int(headers.get("content-length", "0"))
        self.body = b""
        self.is_last = is_last
        self.is_whole = False
        self.is_wanted = True

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class Answer(NamedTuple):
    """What is answered.

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


Handler = Callable[[Request], Awaitable[Answer]]

Paths = Mapping[str, tuple[str, Handler]]
"""Method and handler by path; a path that ends with a slash stands for what is one below, too."""


def text(said: str, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    """Return a text as an answer."""
    return Answer(said.encode(), status, TEXT)


def error(status: HTTPStatus, message: str, *, is_last: bool = False) -> Answer:
    """Return an answer that says what is wrong."""
    return Answer(encode({"error": printable(message)}), status, is_last=is_last)


async def answer(paths: Paths, request: Request) -> Answer:
    """Return what the handler of a path answers, or why there is none."""
    path = request.path
    found = paths.get(path) or paths.get(path[: path.find("/", 1) + 1])
    if found is None:
        return error(HTTPStatus.NOT_FOUND, f"{path} is not served here", is_last=True)
    method, handler = found
    if request.method not in (method, "HEAD" if method == "GET" else method):
        problem = f"{path} takes {method}, not {request.method}"
        return error(HTTPStatus.METHOD_NOT_ALLOWED, problem, is_last=True)
    try:
        return await handler(request)
    except InvalidInput as exc:
        return error(HTTPStatus.BAD_REQUEST, str(exc))
    except MemoryError:
        log.exception("no memory for a call", path=path)
        return error(HTTPStatus.INTERNAL_SERVER_ERROR, "out of memory", is_last=True)
    except Exception as exc:  # noqa: BLE001 - kube-scheduler is told, and tries the pod again
        return error(HTTPStatus.INTERNAL_SERVER_ERROR, str(take_note("http", path, exc)))
