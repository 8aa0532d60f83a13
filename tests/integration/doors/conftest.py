import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from reserver.extender.server import EXTENDER_LIMITS, HEALTH_LIMITS
from tests.integration.doors.mutual_tls import Pki
from tests.integration.doors.site import Site, serving


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run these tests on the event loop that reserver runs on."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
async def extender() -> AsyncIterator[Site]:
    async with serving(EXTENDER_LIMITS) as site:
        yield site


@pytest.fixture
async def health() -> AsyncIterator[Site]:
    async with serving(HEALTH_LIMITS) as site:
        yield site


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)
