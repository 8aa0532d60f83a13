"""A unit test that takes a minute hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

LIMIT_S = 60
FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
