import pytest

from tests.unit.promises.tape import Tape


@pytest.fixture
def tape() -> Tape:
    tape = Tape()
    for node in ("m", "n"):
        tape.node(node)
    return tape
