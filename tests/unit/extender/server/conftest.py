from collections.abc import AsyncIterator

import aiohttp
import pytest

from reserver.extender.server import EXTENDER_LIMITS, Routes
from reserver.http.access import Access, listening
from reserver.http.connections import Hosts
from tests.unit.extender.conftest import Served
from tests.unit.extender.server.calls import Client, metrics


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    def checks() -> list[tuple[str, str]]:
        return [("lease", ""), ("watch/api/v1/nodes", "".join(served.readiness.said))]

    obstacles = lambda: served.readiness.said  # noqa: E731 - as it is handed over
    routes = Routes(served.extender, metrics(served), obstacles, checks)
    door = Access(EXTENDER_LIMITS, Hosts.of("127.0.0.1", ()), lambda _: None)
    async with listening(routes.paths(), ("127.0.0.1", 0), 1.0, door) as url:
        connector = aiohttp.TCPConnector(limit=1)
        headers = {"Content-Type": "application/json"}
        async with aiohttp.ClientSession(url, connector=connector, headers=headers) as client:
            yield client
