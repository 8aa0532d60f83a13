"""Requests are read off pieces of any size."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from reserver.http.message import HttpRequest, ListenerLimits, Malformed, Reader

LIMITS = ListenerLimits(headers=8, header_bytes=100)
LARGE = b"x" * 5_000
"""Longer than all of a head may be."""


class Read:
    """The result of reading a request."""

    def __init__(self) -> None:
        self.heads: list[HttpRequest] = []
        self.whole: list[HttpRequest] = []
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
@pytest.mark.parametrize("ahead", [b"", b"".join(post(b"one"))], ids=["first", "later"])
def test_what_is_no_request_or_too_large_is_refused(
    read: Read, pieces: list[bytes], ahead: bytes
) -> None:
    read.feed([ahead])
    with pytest.raises(Malformed):
        read.feed(pieces)


ODD_LENGTHS = {
    "zeros before": "05",
    "many zeros": "0" * 80 + "5",
    "nothing but zeros": "00",
    "twenty digits": "1" + "0" * 19,
    "2^64": str(2**64),
    "thousands of digits": "9" * 90,
    "a sign": "+5",
    "less than nothing": "-1",
    "an underscore": "1_0",
    "hexadecimal": "0x5",
    "a list": "5, 5",
    "a fraction": "5.0",
    "other digits": "\u0665",
    "superscript": "\u00b2",
    "empty": "",
}


@pytest.mark.parametrize("what", ODD_LENGTHS)
def test_a_length_that_is_not_written_as_one_is_refused(read: Read, what: str) -> None:
    head = f"POST /bind HTTP/1.1\r\nContent-Length: {ODD_LENGTHS[what]}\r\n\r\n"
    with pytest.raises(Malformed):
        read.feed([head.encode(), b"hello"])
    assert not read.whole


@pytest.mark.parametrize("length", ["0" * 5_000 + "5", "9" * 5_000])
def test_a_length_of_thousands_of_digits_is_refused_where_fields_may_be_so_long(
    length: str,
) -> None:
    reader = Reader(ListenerLimits(header_bytes=8_192), lambda _: None, lambda _: None)
    with pytest.raises(Malformed, match="Content-Length"):
        reader.feed(f"POST /bind HTTP/1.1\r\nContent-Length: {length}\r\n\r\nhello".encode())


@pytest.mark.parametrize("version", ["0.9", "2.0", "1.2", "9.9", "1", "1.1.1", "x"])
def test_other_versions_of_http_are_refused(read: Read, version: str) -> None:
    with pytest.raises(Malformed):
        read.feed([f"GET / HTTP/{version}\r\nHost: a\r\n\r\n".encode()])


def test_http_1_0_is_read_and_not_kept_open(read: Read) -> None:
    read.feed([b"GET /healthz HTTP/1.0\r\nHost: a\r\n\r\n"])
    assert [request.is_last for request in read.whole] == [True]
