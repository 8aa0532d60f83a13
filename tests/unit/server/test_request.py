"""Requests are read off pieces of any size."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from reserver.server.limits import Limits
from reserver.server.request import Malformed, Reader, Request

LIMITS = Limits(headers=8, header_bytes=100)
LARGE = b"x" * 5_000
"""Longer than all of a head may be."""


class Read:
    """What was read."""

    def __init__(self) -> None:
        self.heads: list[Request] = []
        self.whole: list[Request] = []
        self.reader = Reader(LIMITS, self.heads.append, self.whole.append)

    def feed(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.reader.feed(piece)


@pytest.fixture
def read() -> Read:
    return Read()


def post(body: bytes, *headers: str) -> tuple[bytes, bytes]:
    """Return the head and the body of a request."""
    lines = ("POST /bind HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *headers)
    return "\r\n".join((*lines, "", "")).encode(), body


def test_the_end_of_a_body_is_not_counted_as_a_head(read: Read) -> None:
    read.feed(post(LARGE) * 5)
    assert [request.body for request in read.whole] == [LARGE] * 5


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_requests_are_the_same_however_they_are_cut(read: Read, size: int) -> None:
    raw = b"".join(post(b"one") + post(b"") + post(LARGE))
    read.feed(raw[at : at + size] for at in range(0, len(raw), size))
    assert [request.body for request in read.whole] == [b"one", b"", LARGE]
    assert [request.body_bytes for request in read.heads] == [3, 0, 5_000]
    assert not read.reader.is_within


def test_a_body_that_nobody_wants_is_not_kept(read: Read) -> None:
    head, body = post(LARGE)
    read.feed([head, body[:10]])
    (request,) = read.heads
    request.is_wanted = False
    read.feed([body[10:]])
    assert (request.body, request.is_whole) == (body[:10], True)


def test_a_field_that_comes_twice_is_one_list(read: Read) -> None:
    read.feed(post(b"", "X-A: one", "x-a: two"))
    assert read.heads[0].headers["x-a"] == "one, two"


@pytest.mark.parametrize(
    "pieces",
    [
        [b"\r\n" * 60] * 10,
        [b"GET /", *[b"x" * 60] * 2],
        [b"GET / HTTP/1.1\r\nA: ", *[b"x" * 90] * 10],
        [b"GET / HTTP/1.1\r\n", b"A: x\r\n" * 9, b"\r\n"],
        [b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"],
        [b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"],
        [b"GET / HTTP/1.1\nHost: a\n\n"],
    ],
    ids=["empty-lines", "line", "field", "fields", "upgrade", "lengths", "bare-lf"],
)
def test_what_is_no_request_or_too_large_is_refused(read: Read, pieces: list[bytes]) -> None:
    with pytest.raises(Malformed):
        read.feed(pieces)
