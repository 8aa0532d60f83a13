"""The gRPC API on a port, connections to it, and calls that stay open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

from reserver.grpc.access import CallAccess
from reserver.grpc.service import serving
from tests.builders import node, state_of
from tests.unit.grpc.services import service_of
from tests.unit.grpc.test_access import Reviewer, bearer

GET = "/reserver.v1.ReservationService/Get"
ROOT = bearer("root")


@asynccontextmanager
async def served(
    reviewer: Reviewer | None,
    again_s: float = 60.0,
    obstacles: Callable[[], tuple[str, ...]] = tuple,
) -> AsyncIterator[str]:
    service = service_of(
        state=state_of(node("worker-1", cpu="4")),
        access=CallAccess(reviewer, again_s) if reviewer else None,
    )
    async with serving(("127.0.0.1", 0), service, obstacles, 1.0) as address:
        yield address


@asynccontextmanager
async def channel(address: str) -> AsyncIterator[Any]:
    """Yield a new connection."""
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_metadata_size", 2**20))
    async with grpc.aio.insecure_channel(address, options) as made:
        yield made


async def begun(watch: Any) -> Any:
    """Return a watch after its first message."""
    first = await watch.read()
    assert first is not grpc.aio.EOF
    return watch
