"""A policy as a YAML document: scalars as Go reads them, and bounds."""

from __future__ import annotations

import pytest

from reserver.wire.rebalance import document
from reserver.wire.rebalance.policyform import read


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("yes", True),
        ("OFF", False),
        ("~", None),
        ("010", 8),
        ("0o10", 8),
        ("09", 9),
        ("1_000", 1000),
        ("-0x1F", -31),
        ("0b11", 3),
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("+3", 3),
        ("1e999", "1e999"),
        ("12:30", "12:30"),
        ("2001-01-01", "2001-01-01"),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!mine 5", "5"),
        ("!!int '5'", 5),
        ("18446744073709551616", 18446744073709551616),
    ],
)
def test_a_scalar_is_what_go_yaml_makes_of_it(written: str, expected: object) -> None:
    value, _ = document.parse(f"x: {written}".encode())
    assert value == {"x": expected}
    assert type(value["x"]) is type(expected)


def test_merge_keys_and_aliases_are_followed_in_the_order_of_the_file() -> None:
    value, _ = document.parse(b"a: &a {x: 1, z: 1}\nb: {x: 2, <<: *a}\nc: {<<: [*a], z: 3}")
    assert value == {"a": {"x": 1, "z": 1}, "b": {"x": 1, "z": 1}, "c": {"x": 1, "z": 3}}


BOMB = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"x" * (document.MOST_BYTES + 1), "bytes are too many"),
        (b"\xff\xfe", "is not UTF-8"),
        (BOMB.encode(), "has more than 65536 values"),
        (b"[" * 100_000, "deeper than 32"),
        (b"[" * 40 + b"]" * 40, "deeper than 32"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "deeper than 32"),
        (b'{"a":' * 5_000, "deeper than 32"),
        (b"a: &a [*a]", "deeper than 32"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "out of range"),
        (b'{"a": NaN}', "not a number that JSON knows"),
    ],
)
def test_a_document_that_costs_too_much_is_refused(raw: bytes, expected: str) -> None:
    (problem,) = read(raw, lambda _: None).problems
    assert expected in problem.problem
