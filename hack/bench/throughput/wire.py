"""The packets between kube-scheduler and an extender on loopback, with kernel timestamps.

An extender knows only when it read a request, not when the request reached its socket. A packet
socket shows that for any extender, unchanged; it needs CAP_NET_RAW.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_IPV4, _TIMESTAMP, _FILTER, _BUFFER = 0x0800, 35, 26, 33
"""ETH_P_IP, SO_TIMESTAMPNS_OLD, SO_ATTACH_FILTER, SO_RCVBUFFORCE."""

_BUFFER_BYTES = 2**26
_SEEN_BYTES = 160
"""Captured bytes of each packet: headers, and the first line of a request."""

_LOOK_S = 0.5
"""Seconds between two look-ups of the extender's connections."""

_OUTGOING = 4
"""PACKET_OUTGOING: on loopback each packet is seen again as an incoming one."""

_ESTABLISHED = "01"


class Packet(NamedTuple):
    """A TCP segment with a payload.

    Attributes:
        at: unix seconds of its delivery by the kernel.
        source: source port.
        target: destination port.
        begins: the first bytes of its payload.
    """

    at: float
    source: int
    target: int
    begins: bytes


@dataclass(frozen=True)
class Call:
    """A Filter call on the wire, in unix seconds.

    Attributes:
        first: delivery of its first segment.
        last: delivery of its last segment.
        answered: delivery of the answer's first segment.
        is_alone: no other packet reached the extender shortly before, or meanwhile.
    """

    first: float
    last: float
    answered: float
    is_alone: bool


def packet(at: float, frame: bytes) -> Packet | None:
    """Return the segment in an IPv4 packet, None if it has no payload."""
    head = (frame[0] & 0x0F) * 4
    total = struct.unpack_from("!H", frame, 2)[0]
    source, target = struct.unpack_from("!HH", frame, head)
    begin = head + (frame[head + 12] >> 4) * 4
    return Packet(at, source, target, frame[begin:]) if total > begin else None


def filter_calls(packets: Iterable[Packet], port: int, lull_s: float) -> Iterator[Call]:
    """Yield the Filter calls to an extender; kube-scheduler makes them one after the other.

    Args:
        packets: packets of this extender alone, in their order.
        port: port of the extender.
        lull_s: seconds without other packets before a call that counts as alone.
    """
    caller, first, last, is_quiet, beside = 0, 0.0, 0.0, False, 0.0
    for each in packets:
        if each.target == port and each.begins.startswith(b"POST /filter"):
            caller, first, last = each.source, each.at, each.at
            is_quiet = first - beside > lull_s
        elif each.target == port and each.source == caller:
            last = each.at
        elif each.source == port and each.target == caller:
            yield Call(first, last, each.at, is_quiet and beside < first)
            caller = 0
        else:
            beside = each.at


@contextmanager
def captured(port: int, pid: int) -> Iterator[list[Packet]]:
    """Yield a list to which the packets of an extender are added until the end of the block.

    Args:
        port: port of the extender.
        pid: process of the extender, whose other connections are captured as well.
    """
    packets: list[Packet] = []
    is_over = threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_IPV4)) as sniffer:
        sniffer.bind(("lo", 0))
        sniffer.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
        sniffer.setsockopt(socket.SOL_SOCKET, _BUFFER, _BUFFER_BYTES)
        sniffer.settimeout(_LOOK_S)
        _admit(sniffer, [port])
        thread = threading.Thread(target=_read, args=(sniffer, packets, is_over, port, pid))
        thread.start()
        try:
            yield packets
        finally:
            is_over.set()
            thread.join()


def _read(
    sniffer: socket.socket, packets: list[Packet], is_over: threading.Event, port: int, pid: int
) -> None:
    look = 0.0
    while not is_over.is_set():
        try:
            frame, extra, _, _ = sniffer.recvmsg(_SEEN_BYTES, 64)
        except TimeoutError:
            continue
        seconds, nanoseconds = struct.unpack("qq", extra[0][2])
        at = seconds + nanoseconds / 1e9
        if at > look:
            _admit(sniffer, [port, *_ports(pid)])
            look = at + _LOOK_S
        if found := packet(at, frame):
            packets.append(found)


def _admit(sniffer: socket.socket, ports: Sequence[int]) -> None:
    """Admit only packets from or to these ports (a classic BPF program)."""
    wanted = [*dict.fromkeys(ports)][:100]  # Jumps reach 255 instructions.
    end = 3 + 2 * len(wanted) + 1  # The instruction that drops packets; the next one admits them.
    program = [(0x28, 0, 0, 0xFFFFF004), (0x15, end - 2, 0, _OUTGOING)]  # ld type; jeq outgoing
    for offset in (20, 22):  # The ports, behind an IPv4 header without options.
        program.append((0x28, 0, 0, offset))
        for number in wanted:
            program.append((0x15, end - len(program), 0, number))
    program += [(0x06, 0, 0, 0), (0x06, 0, 0, _SEEN_BYTES)]
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    kept = ctypes.create_string_buffer(code, len(code))
    address = ctypes.addressof(kept)
    filter_program = struct.pack("@HP", len(program), address)
    sniffer.setsockopt(socket.SOL_SOCKET, _FILTER, filter_program)


def _ports(pid: int) -> Iterator[int]:
    """Yield the local ports of the open TCP connections of a process."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(str(descriptor.readlink()))
        except OSError:  # The descriptor was closed meanwhile.
            continue
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _ESTABLISHED and f"socket:[{fields[9]}]" in sockets:
            yield int(fields[1].rpartition(":")[2], 16)
