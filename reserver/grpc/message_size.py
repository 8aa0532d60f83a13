"""Reads the message of a call, once its caller is known and if it is short enough."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from reserver.grpc.status_errors import CallError
from reserver.k8s.objects.limits import SET_BYTES

PATIENCE_S = 10.0
"""How long the message of a call may take to come, and all of reflection, in seconds."""

_POD_BYTES = 4 * 2**20
_BYTES = SET_BYTES + SET_BYTES // 4
_POD_METHODS = "SchedulerService/"

Decode = Callable[[bytes], Any]


def most_bytes(method: str) -> int:
    """Return how long the messages of a method, ``Service/Method``, may be, in bytes.

    To unpack a megabyte of small fields takes some thirty milliseconds. Only pods may be longer; a
    set has its names beside its specs.
    """
    return _POD_BYTES if method.startswith(_POD_METHODS) else _BYTES


async def receive(requests: AsyncIterator[bytes], decode: Decode, most: int) -> Any:  # noqa: ANN401
    """Return the message of a call that has one, of at most `most` packed bytes.

    Raises:
        CallError: it does not come, is too long, or is none.
    """
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    packed = await _first(requests)
    if packed is None:
        raise CallError(invalid, "NO_MESSAGE", "the call has no message")
    if len(packed) > most:
        problem = f"the message has {len(packed)} bytes; send {most} at most"
        raise CallError(invalid, "MESSAGE_TOO_LONG", problem)
    try:
        return decode(packed)
    except DecodeError as exc:
        problem = "the message is not of this method; see docs/grpc-reference.md"
        raise CallError(invalid, "MALFORMED", problem) from exc


async def _first(requests: AsyncIterator[bytes]) -> bytes | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for packed in requests:
                return packed
    except TimeoutError as exc:
        problem = f"no message came within {PATIENCE_S:.0f} seconds"
        raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "NO_MESSAGE", problem) from exc
    return None
