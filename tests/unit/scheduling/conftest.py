import pytest

from tests.unit.scheduling.counted import Work, counting


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return counting(monkeypatch)
