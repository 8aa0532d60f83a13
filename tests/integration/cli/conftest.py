"""Commands next to Reserver on the embedded cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.integration.cli.runs import Run, runs_beside
from tests.integration.world import World, serving


@pytest.fixture(autouse=True)
def without_logs() -> Iterator[None]:
    """Keep Reserver's log apart: it would stand among what a command prints."""
    with capture_logs():
        yield


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with serving(tmp_path, "worker-1", "worker-2") as world:
        yield world


@pytest.fixture
def run(world: World) -> Run:
    return runs_beside(world)
