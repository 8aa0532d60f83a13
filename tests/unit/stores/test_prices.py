"""The table of prices: its valid content, and the price of hours."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.errors import InvalidInput
from reserver.reservations.accounts import HoldUse
from reserver.stores.codec import prices

GIB = 2**30


def test_hours_cost_what_the_table_says_of_cores_gibs_and_pieces() -> None:
    table = prices.parse("cpu=0.5,memory=0.25,nvidia.com/gpu=2,currency=EUR")
    hours = {
        "cpu": HoldUse(2000, 1000, 1000),
        "memory": HoldUse(4 * GIB),
        "nvidia.com/gpu": HoldUse(0, 0, 3),
        "pods": HoldUse(100),
    }
    assert table.currency == "EUR"
    assert table.cost(hours) == HoldUse(1 + 1, 0.5, 0.5 + 6)
    assert table.cost({"pods": HoldUse(1)}) is None
    assert prices.parse("none").cost(hours) is None


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ({}, "none"),
        ({"cpu": "0.03", "currency": "EUR"}, "cpu=0.03,currency=EUR"),
        ({"cpu": 1, "memory": 0.5}, "cpu=1,memory=0.5"),
        ({"hugepages-2Mi": "0"}, "hugepages-2Mi=0"),
    ],
)
def test_a_table_stands_for_a_text_and_back(written: Any, text: str) -> None:
    assert prices.read_table(written) == text
    assert prices.read_table(prices.show_table(text)) == text


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ([], "is not a table"),
        ("cpu=1", "is not a table"),
        (None, "is not a table"),
        ({"cpu": "cheap"}, "cpu: 'cheap' is not a price"),
        ({"cpu": "-1"}, "cpu: '-1' is not a price"),
        ({"cpu": "nan"}, "cpu: 'nan' is not a price"),
        ({"cpu": "1e99"}, "cpu: '1e99' is not a price"),
        ({"cpu": "1_0"}, "cpu: '1_0' is not a price"),
        ({"cpu": True}, "cpu: True is not a price"),
        ({"cpu": {"a": 1}}, "cpu: {'a': 1} is not a price"),
        ({"cpu": "1,memory=2"}, "is not a price"),
        ({"CPU time": "1"}, "is not a resource"),
        ({1: 1}, "is not a resource"),
        ({"currency": "a b"}, "currency: 'a b' is not 1 to 8"),
        ({"currency": "E" * 9}, "is not 1 to 8"),
        ({f"x.example/r{n}": 1 for n in range(33)}, "33 prices are too many"),
    ],
)
def test_what_is_no_table_is_refused_with_the_place(written: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match="write") as caught:
        prices.read_table(written)
    assert problem in str(caught.value)


def test_a_flag_is_refused_under_its_name() -> None:
    for text in ("cpu", "cpu=1,cpu=2", ""):
        with pytest.raises(InvalidInput, match=r"^--prices: .* is not NAME=PRICE"):
            prices.check("--prices", text)
