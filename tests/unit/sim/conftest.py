from __future__ import annotations

import pytest

from tests.unit.sim.controlled import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
