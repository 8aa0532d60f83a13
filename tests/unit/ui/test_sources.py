"""The rate at which the page reads Reserver."""

from __future__ import annotations

import pytest

from reserver.ui.sources import rest_s


@pytest.mark.parametrize(
    ("took_s", "rests_s"),
    [
        pytest.param(0.001, 0.5, id="a small cluster"),
        pytest.param(0.25, 10.0, id="5,000 nodes: a fortieth of the time"),
        pytest.param(8.0, 10.0, id="after waiting for a successor"),
    ],
)
def test_a_read_that_takes_long_is_repeated_more_rarely(took_s: float, rests_s: float) -> None:
    assert rest_s(took_s) == rests_s
