"""Label selectors as a text, by the rules of `labels.Parse`."""

from __future__ import annotations

import pytest

from reserver.cluster.labels import EVERYTHING, Requirement, Selector
from reserver.errors import InvalidInput
from reserver.k8s.objects.selectors import parse_selector


def term(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key, operator, frozenset(values))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
        ("a", [term("a", "Exists")]),
        ("!a", [term("a", "DoesNotExist")]),
        ("! a", [term("a", "DoesNotExist")]),
        ("a=b", [term("a", "In", "b")]),
        ("a == b", [term("a", "In", "b")]),
        ("a!=b", [term("a", "NotIn", "b")]),
        ("a=", [term("a", "In", "")]),
        ("a=,b", [term("a", "In", ""), term("b", "Exists")]),
        ("a in (b,c)", [term("a", "In", "b", "c")]),
        ("a notin ( b , c )", [term("a", "NotIn", "b", "c")]),
        ("a in ()", [term("a", "In", "")]),
        ("a in (,b)", [term("a", "In", "", "b")]),
        ("in in (in)", [term("in", "In", "in")]),
        ("a>1,a<9", [term("a", "Gt", "1"), term("a", "Lt", "9")]),
        ("x.io/a=b, c", [term("x.io/a", "In", "b"), term("c", "Exists")]),
    ],
)
def test_a_selector_means_what_kubernetes_says(text: str, expected: list[Requirement]) -> None:
    assert parse_selector(text) == Selector(tuple(expected))


def test_an_empty_text_selects_everything() -> None:
    assert parse_selector("") == EVERYTHING


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a,",
            ",a",
            "a b",
            "a=b c",
            "a in b",
            "a in (b c)",
            "a in (b",
            "a in (b)c",
            "a in (b,-c)",
        ),
        *("a=(", "!a=b", "a>b", "=b", "-a", "a=-b", "x/y/z", "!", "a=!b"),
    ],
)
def test_what_is_no_selector_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_selector(text)
    assert caught.value.remedy
