"""Idempotent requests: recognizes a repeated one by its caller and request id."""

from __future__ import annotations

import hashlib
from typing import Protocol

from google.protobuf.message import Message

from reserver.errors import InvalidInput
from reserver.server.rpc.caller import caller

MOST_REQUEST_ID = 64


class Request(Protocol):
    """A request with an id."""

    request_id: str


def key_of(request: Request) -> tuple[str, str] | None:
    """Return the key of a request that may be repeated; None without a request id.

    Raises:
        InvalidInput: the id is too long.
    """
    name = request.request_id
    if len(name) > MOST_REQUEST_ID:
        problem = f"{len(name)} characters are too many"
        raise InvalidInput("requestId", problem, f"send {MOST_REQUEST_ID} at most")
    return (caller.get(), name) if name else None


def digest_of(request: Message) -> bytes:
    """Return what tells a request from another one of the same id."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def check_same(before: bytes, request: Message) -> None:
    """Refuse a request that has the id of another one, of which this is the digest.

    Raises:
        InvalidInput: it is another one.
    """
    if before != digest_of(request):
        problem = "belongs to another request"
        raise InvalidInput("requestId", problem, "choose one for each request")
