"""Answers of an HTTP listener, and the routes to its handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

from reserver.printable import printable
from reserver.server.request import Request
from reserver.wire.k8s.objects import encode

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class Answer(NamedTuple):
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


Answered = Answer | Awaitable[Answer]
"""An answer that is there at once, or one that takes waiting."""

Handler = Callable[[Request], Answered]

Paths = Mapping[str, tuple[str, Handler]]
"""Method and handler by path; a path that ends with a slash stands for what is one below, too."""


def text(said: str, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    """Return a text as an answer."""
    return Answer(said.encode(), status, TEXT)


def error(status: HTTPStatus, message: str, *, is_last: bool = False) -> Answer:
    """Return an answer that says what is wrong."""
    return Answer(encode({"error": printable(message)}), status, is_last=is_last)
