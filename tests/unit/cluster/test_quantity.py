import pytest

from reserver.cluster import quantity
from reserver.errors import InvalidInput

NANO = 10**9


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("1n", 1),
        ("1u", 1_000),
        ("1m", 1_000_000),
        ("1", NANO),
        ("1k", 10**3 * NANO),
        ("1M", 10**6 * NANO),
        ("1G", 10**9 * NANO),
        ("1T", 10**12 * NANO),
        ("1P", 10**15 * NANO),
        ("1E", 10**18 * NANO),
        ("1Ki", 2**10 * NANO),
        ("1Mi", 2**20 * NANO),
        ("1Gi", 2**30 * NANO),
        ("1Ti", 2**40 * NANO),
        ("1Pi", 2**50 * NANO),
        ("1Ei", 2**60 * NANO),
        ("1e3", 10**3 * NANO),
        ("1E3", 10**3 * NANO),
        ("1e+3", 10**3 * NANO),
        ("25e-1", 2_500_000_000),
        ("1.", NANO),
        (".5", NANO // 2),
        ("+2", 2 * NANO),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("-1", -NANO),
        ("0", 0),
        ("-0", 0),
    ],
)
def test_every_way_to_write_a_quantity_is_read_exactly(text: str, nano: int) -> None:
    assert quantity.parse(text) == nano


@pytest.mark.parametrize(
    ("text", "nano"), [("0.1n", 1), ("-0.1n", -1), ("1.0000000001", NANO + 1), ("1e-40", 1)]
)
def test_what_is_finer_than_a_nano_unit_is_rounded_away_from_zero(text: str, nano: int) -> None:
    assert quantity.parse(text) == nano


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "+",
        "m",
        "Gi",
        "one",
        "1 ",
        " 1",
        "1 Gi",
        "1ki",
        "1K",
        "1mi",
        "1e",
        "1e3Ki",
        "1e1.5",
        "1_000",
        "1,5",
        "0x10",
        "NaN",
        "inf",
        "--1",
        "1m2",
        "٣",
        "1\n",
        "1e41",
        "1e-41",
        "1e9999",
        "9" * 65,
    ],
)
def test_what_is_no_quantity_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        quantity.parse(text)
    assert "4Gi" in refusal.value.remedy


def test_a_refused_quantity_is_quoted_but_not_at_any_length() -> None:
    with pytest.raises(InvalidInput, match="abc"):
        quantity.parse("abc")
    with pytest.raises(InvalidInput) as refusal:
        quantity.parse("9" * 100_000)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "2", 2000),
        ("cpu", "100m", 100),
        ("cpu", "1n", 1),
        ("cpu", "1.0001", 1001),
        ("cpu", "0", 0),
        ("memory", "1", 1),
        ("memory", "1m", 1),
        ("memory", "1500m", 2),
        ("memory", "4Gi", 4 * 2**30),
        ("nvidia.com/gpu", "1", 1),
        ("nvidia.com/gpu", "1.2", 2),
        ("pods", "110", 110),
    ],
)
def test_cpu_counts_in_millicores_and_all_else_in_whole_units_rounded_up(
    resource: str, text: str, amount: int
) -> None:
    assert quantity.amount(resource, text) == amount


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 3000, "3"),
        ("cpu", 0, "0"),
        ("memory", 0, "0"),
        ("memory", 4 * 2**30, "4Gi"),
        ("memory", 1536, "1536"),
        ("memory", 3 * 2**10, "3Ki"),
        ("memory", 2**60, "1Ei"),
        ("nvidia.com/gpu", 3, "3"),
    ],
)
def test_an_amount_is_shown_as_a_person_writes_it(resource: str, value: int, text: str) -> None:
    assert quantity.show(resource, value) == text
