"""Reserver with its gRPC API, on the embedded cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reserver.reservations.enums import StoreKind
from tests.integration.world import World, serving


@pytest.fixture(params=StoreKind)
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Two nodes of 4 CPUs, and Reserver that creates reservations in each of the stores."""
    async with serving(tmp_path, store=request.param) as world:
        yield world
