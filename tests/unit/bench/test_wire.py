"""Filter calls are found in what goes over the wire, and which of them had the extender alone."""

from __future__ import annotations

import struct

import pytest

from hack.bench.throughput.wire import Call, Packet, filter_calls, packet

PORT, SCHEDULER, BINDER, WATCH = 8080, 40001, 40002, 40003
FILTER = b"POST /filter HTTP/1.1"


def asked(at: float) -> list[Packet]:
    """A call in two segments that takes a second; the answer has two segments."""
    return [
        Packet(at, SCHEDULER, PORT, FILTER),
        Packet(at + 1, SCHEDULER, PORT, b"more"),
        Packet(at + 3, PORT, SCHEDULER, b"HTTP/1.1 200 OK"),
        Packet(at + 3, PORT, SCHEDULER, b"more"),
    ]


def test_a_call_lasts_from_its_last_segment_to_the_first_of_the_answer() -> None:
    assert [*filter_calls([*asked(100), *asked(200)], PORT, 1)] == [
        Call(100, 101, 103, is_alone=True),
        Call(200, 201, 203, is_alone=True),
    ]


@pytest.mark.parametrize(
    ("other", "is_alone"),
    [
        (Packet(99.5, WATCH, 6443, b""), False),
        (Packet(98, WATCH, 6443, b""), True),
        (Packet(102, BINDER, PORT, b"POST /bind HTTP/1.1"), False),
        (Packet(104, BINDER, PORT, b"POST /bind HTTP/1.1"), True),
    ],
    ids=["just before", "long before", "meanwhile", "after"],
)
def test_a_call_is_alone_if_nothing_else_happens(other: Packet, *, is_alone: bool) -> None:
    packets = sorted([*asked(100), other])
    assert [call.is_alone for call in filter_calls(packets, PORT, 1)] == [is_alone]


@pytest.mark.parametrize(("payload", "is_seen"), [(b"POST", True), (b"", False)])
def test_a_segment_is_read_from_an_ipv4_packet(payload: bytes, *, is_seen: bool) -> None:
    head = struct.pack("!BBH", 0x45, 0, 40 + len(payload)) + bytes(16)
    tcp = struct.pack("!HH", SCHEDULER, PORT) + bytes(8) + b"\x50" + bytes(7)
    expected = Packet(7, SCHEDULER, PORT, payload) if is_seen else None
    assert packet(7, head + tcp + payload) == expected
