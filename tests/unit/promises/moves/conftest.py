from __future__ import annotations

import pytest

from tests.unit.promises.moves.moved import Moved


@pytest.fixture
def tape() -> Moved:
    return Moved()
