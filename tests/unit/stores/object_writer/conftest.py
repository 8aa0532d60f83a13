import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.stores.desks import ItemDesk
from tests.unit.stores.object_writer.desk import Make


@pytest.fixture
async def desk() -> AsyncIterator[Make]:
    async with asyncio.TaskGroup() as tasks:
        yield lambda *script: ItemDesk(tasks, *script)
