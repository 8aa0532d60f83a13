"""Clients of the Reserver of a test."""

from collections.abc import AsyncIterator

import pytest

from reserver.client import Client
from tests.integration.world import World


@pytest.fixture
async def client(world: World) -> AsyncIterator[Client]:
    assert world.running.grpc_address
    async with Client(world.running.grpc_address) as client:
        yield client
