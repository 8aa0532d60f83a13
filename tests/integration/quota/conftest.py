"""Reserver that stores Reservation objects, for tests of quotas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reserver.reservations.enums import StoreKind
from tests.integration.world import World, serving


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with serving(tmp_path, "worker-1", "worker-2", store=StoreKind.OBJECT) as world:
        yield world
