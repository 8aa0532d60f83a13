"""The limits of moves, from settings to arbitration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from reserver.errors import ConfigurationError
from reserver.k8s.objects.move_windows import MoveWindow
from reserver.moves.controller import MoveController
from reserver.moves.limits import DEFAULT, MoveLimits
from reserver.process.features import allow
from reserver.settings.serve import Settings


def allowed(**given: Any) -> MoveLimits:
    """Return the limits that settings give."""
    found: list[MoveLimits] = []

    def take(_: tuple[MoveWindow, ...], limits: MoveLimits) -> None:
        found.append(limits)

    mover = SimpleNamespace(arbitration=SimpleNamespace(allow=take))
    allow(cast("MoveController", mover), Settings(**given))
    return found[0]


def test_without_settings_limits_are_those_of_the_code() -> None:
    assert allowed() == DEFAULT


def test_each_setting_is_a_limit_and_0_is_none() -> None:
    found = allowed(
        max_migrating_per_node=0,
        max_migrating_per_namespace=5,
        max_migrating_globally=7,
        max_migrating_per_workload="25%",
    )
    assert found == MoveLimits(
        per_node=None, per_namespace=5, globally=7, workload_percent=25, ahead=DEFAULT.ahead
    )


@pytest.mark.parametrize("most", [-1, 100_001])
def test_a_number_that_is_no_limit_is_refused(most: int) -> None:
    with pytest.raises(
        ConfigurationError, match=r"max-migrating-globally: .* is no limit; write 0"
    ):
        Settings(max_migrating_globally=most)
