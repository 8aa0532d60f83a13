import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster import quantity

UNITS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(1000**2),
    "G": Fraction(1000**3),
    "T": Fraction(1000**4),
    "P": Fraction(1000**5),
    "E": Fraction(1000**6),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
    "Pi": Fraction(1024**5),
    "Ei": Fraction(1024**6),
} | {f"e{exponent}": Fraction(10) ** exponent for exponent in range(-12, 13)}

digits = st.text("0123456789", min_size=1, max_size=12)
numbers = st.builds("{}.{}".format, digits, digits) | digits
signs = st.sampled_from(["", "+", "-"])
resources = st.sampled_from(["cpu", "memory", "nvidia.com/gpu"])


@given(signs, numbers, st.sampled_from(sorted(UNITS)))
def test_a_quantity_is_its_exact_fraction_rounded_away_from_zero_to_nano_units(
    sign: str, number: str, unit: str
) -> None:
    exact = Fraction(number) * UNITS[unit] * 10**9
    rounded = math.ceil(exact) * (-1 if sign == "-" else 1)
    assert quantity.parse(f"{sign}{number}{unit}") == rounded


@given(resources, numbers, st.sampled_from(sorted(UNITS)))
def test_an_amount_is_the_least_whole_one_that_is_enough(
    resource: str, number: str, unit: str
) -> None:
    in_units = Fraction(number) * UNITS[unit] * (1000 if resource == "cpu" else 1)
    amount = quantity.amount(resource, f"{number}{unit}")
    assert amount == math.ceil(in_units)


@given(resources, st.integers(0, quantity.MAX) | st.integers(0, 63).map(lambda bit: 1 << bit))
def test_what_is_shown_reads_as_the_same_amount(resource: str, value: int) -> None:
    assert quantity.amount(resource, quantity.show(resource, value)) == value


@pytest.mark.parametrize("limit", [1, 10, 60])
@given(text=st.text(max_size=200))
def test_shortened_text_keeps_its_beginning_and_its_limit(limit: int, text: str) -> None:
    shortened = quantity.shorten(text, limit)
    assert len(shortened) <= limit
    assert text.startswith(shortened.removesuffix("…"))
