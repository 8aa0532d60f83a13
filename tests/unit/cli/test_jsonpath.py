"""`-o jsonpath=…`, as kubectl has it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cli.jsonpath import JsonPath
from reserver.errors import InvalidInput

VALUE = {
    "reservations": [
        {"name": "a", "spec": {"resources": {"cpu": "1", "nvidia.com/gpu": "2"}, "slots": 1}},
        {"name": "b", "spec": {"slots": 2, "reusable": True}},
    ]
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.reservations[*].name}", "a b"),
        (".reservations[0].name", "a"),
        ("{$.reservations[-1].spec.slots}", "2"),
        ("{.reservations[0].spec.resources['nvidia.com/gpu']}", "2"),
        ("{.reservations[1].spec.reusable}", "true"),
        ("{.reservations[9].name}{.reservations[0].nothing.here}", ""),
        ('{range .reservations[*]}{.name}{"\\t"}{@.spec.slots}{"\\n"}{end}', "a\t1\nb\t2\n"),
        ("n={.reservations[0].name};", "n=a;"),
        ("{'x'}", "x"),
        ("{.reservations[0].spec.resources.*}", "1 2"),
        ("{.reservations[1].spec}", '{"slots": 2, "reusable": true}'),
        ("{.reservations[*].name.deep}", ""),
        ("{.reservations[1].name[*]}", ""),
    ],
)
def test_a_template_is_filled(template: str, text: str) -> None:
    assert JsonPath(template).render(VALUE) == text


@pytest.mark.parametrize(
    "text", ["{.a", "{range .a}", "{a b}", "}", '{"\\q"}', "{.a[x]}", "{?(@.a)}"]
)
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"write e\.g\."):
        JsonPath(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [("{.items[*].name}", "{.items}"), ("{range .items[*]}{.name}{end}", "{.items}"),
     ("{[0].name}", "{[0]}"), ("{.reservations[0].name}{.past}", "{.past}")],
)  # fmt: skip
def test_a_field_that_no_list_has_is_refused(text: str, written: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        JsonPath(text).render(VALUE)
    said = f"--output: jsonpath: there is no {written}; write {{.reservations[*]}}"
    assert str(refused.value) == said


def test_what_one_object_lacks_is_empty_as_in_kubectl() -> None:
    assert JsonPath("{.author}{.name}").render(VALUE["reservations"][0]) == "a"


@given(st.text(alphabet="{}[].*'\"$@ab0-rangeend \\", max_size=40))
def test_no_text_ends_in_anything_but_a_refusal(text: str) -> None:
    try:
        template = JsonPath(text)
    except InvalidInput:
        return
    with suppress(InvalidInput):
        assert isinstance(template.render(VALUE), str)
