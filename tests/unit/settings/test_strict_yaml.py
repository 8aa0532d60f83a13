"""A policy as a YAML document: scalars, quirks that are refused, and bounds."""

from __future__ import annotations

import pytest

from reserver.errors import InvalidInput
from reserver.rebalance.policy_reader import read
from reserver.settings import strict_yaml as document


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("true", True),
        ("False", False),
        ("~", None),
        ("0", 0),
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("+3", 3),
        ("1e30", 1e30),
        ("1e999", "1e999"),
        ("2001-01-01", "2001-01-01"),
        ("'yes'", "yes"),
        ('"010"', "010"),
        ("18446744073709551616", 18446744073709551616),
    ],
)
def test_a_scalar_that_all_readers_of_yaml_understand_alike_is_read(
    written: str, expected: object
) -> None:
    value, _ = document.parse(f"x: {written}".encode())
    assert value == {"x": expected}
    assert type(value["x"]) is type(expected)


@pytest.mark.parametrize(
    ("written", "problem", "remedy"),
    [
        *((each, "a boolean in YAML 1.1", "write true or false") for each in ("yes", "OFF", "y")),
        *(
            (each, "understand differently", "write it in decimal digits")
            for each in ("010", "0o10", "09", "-0x1F", "0b11", "00.5", "0_1")
        ),
        *((each, "with underscores", "write it without them") for each in ("1_000", "-1_0.5")),
        *((each, "base 60", "put it in quotes") for each in ("12:30", "1:30:05")),
        ("!!str 5", "the tag tag:yaml.org,2002:str is not read", "without its tag"),
        ("!mine 5", "the tag !mine is not read", "without its tag"),
    ],
)
def test_a_scalar_that_readers_of_yaml_understand_differently_is_refused_with_its_path(
    written: str, problem: str, remedy: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        document.parse(f"a:\n- x: {written}".encode())
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy
    assert caught.value.path == ("" if "tag" in problem else "a[0].x")


@pytest.mark.parametrize("written", ["yes: 1", "5: 1", "<<: {y: 1}", "[a]: 1", "? {a: b}\n: 1"])
def test_the_name_of_a_field_is_a_plain_text(written: str) -> None:
    with pytest.raises(InvalidInput):
        document.parse(written.encode())


def test_aliases_are_followed() -> None:
    value, _ = document.parse(b"a: &a {x: 1}\nb: *a")
    assert value == {"a": {"x": 1}, "b": {"x": 1}}


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
        (b'{"a": NaN}', "not a JSON number"),
    ],
)
def test_a_document_that_costs_too_much_is_refused(raw: bytes, expected: str) -> None:
    (problem,) = read(raw, lambda _: None).problems
    assert expected in problem.problem
