import pytest

from tests.unit.moves.world import World


@pytest.fixture
async def world() -> World:
    made = World()
    await made.start()
    return made
