"""Answers of an HTTP listener, and the routes to its handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

from reserver.http.request import HttpRequest
from reserver.k8s.objects.objects import encode
from reserver.printable import printable

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
