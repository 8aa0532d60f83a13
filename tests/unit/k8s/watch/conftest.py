from functools import partial

import pytest

from reserver.base.pacer import Pacer
from reserver.k8s.watch import reflector as reflector_module


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of turns, so that a script is read in its order."""
    monkeypatch.setattr(reflector_module, "Pacer", partial(Pacer, timer=lambda: 0.0))
