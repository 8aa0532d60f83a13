"""Quantities as the API server stores them."""

import pytest

from reserver_demo.apiserver.quantities import canonical


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        (2, "2"),
        (0.1, "100m"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("1024", "1024"),
        ("1000Ki", "1000Ki"),
        ("1e3", "1e3"),
        ("100n", "100n"),
        ("0Gi", "0"),
        ("-1000m", "-1"),
    ],
)
def test_quantities_are_stored_in_canonical_form(written: str | float, stored: str) -> None:
    assert canonical(written) == stored


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "--1", "1e", "Gi"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        canonical(text)
