import asyncio
from collections.abc import Callable

import uvloop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run these tests on the event loop that reserver runs on."""
    return {"uvloop": uvloop.new_event_loop}
