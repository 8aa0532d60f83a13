"""Label and field selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver_demo.apiserver.resources import POD_RESOURCE
from reserver_demo.apiserver.selectors import FieldTerm, Selector, parse_fields, parse_labels
from reserver_demo.apiserver.status import StatusError

NAMES = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
LABELS = st.dictionaries(NAMES, NAMES, max_size=3)


def _matches(selector: str, labels: dict[str, str]) -> bool:
    return all(requirement.matches(labels) for requirement in parse_labels(selector))


@given(LABELS, NAMES, NAMES)
def test_each_operator_has_its_opposite(labels: dict[str, str], key: str, value: str) -> None:
    for positive, negative in (
        (f"{key}={value}", f"{key}!={value}"),
        (f"{key} in ({value})", f"{key} notin ({value})"),
        (key, f"!{key}"),
    ):
        assert _matches(positive, labels) != _matches(negative, labels)


@given(LABELS)
def test_labels_match_the_selector_made_of_them(labels: dict[str, str]) -> None:
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    assert _matches(selector, labels)


def test_empty_values_and_blanks() -> None:
    assert _matches("a=", {"a": ""})
    assert not _matches("a=", {})
    assert _matches(" a in ( x , y ) , b ", {"a": "y", "b": ""})
    assert _matches("", {"a": "b"})


@pytest.mark.parametrize("text", ["a=b=c", "a in (", "a in b", ",", "a,,b", "=x", "a b", "a>x"])
def test_malformed_label_selectors(text: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_labels(text)
    assert caught.value.code == 400


def test_field_selectors_unescape_their_values() -> None:
    (term,) = parse_fields(r"metadata.name=a\,b\=c", POD_RESOURCE.fields)
    assert term == FieldTerm("metadata.name", "a,b=c", negated=False)


def test_a_missing_field_is_empty() -> None:
    pod = {"metadata": {"name": "a", "namespace": "x"}, "spec": {}, "status": {}}
    for text, expected in (
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("spec.nodeName!=n,status.phase=", True),
    ):
        selector = Selector(fields=parse_fields(text, POD_RESOURCE.fields))
        assert selector.matches(pod, POD_RESOURCE.fields) is expected


def test_the_namespace_is_part_of_a_selector() -> None:
    pod = {"metadata": {"name": "a", "namespace": "x"}}
    assert Selector("x").matches(pod, {})
    assert not Selector("y").matches(pod, {})
