"""The chart's schema and values are of one mind, and know the flags of Reserver."""

import json
from typing import Any

import yaml

from hack.chart import CHART, SCHEMA, schema


def test_the_schema_knows_the_flags() -> None:
    assert schema() == SCHEMA.read_text(), "run `make cli-reference`"


def shape(value: Any) -> Any:
    """Return the fields of values, as far as the chart gives them names."""
    return {key: shape(each) for key, each in value.items()} if isinstance(value, dict) else None


def named(node: dict[str, Any]) -> Any:
    found = node.get("properties")
    return {key: named(each) for key, each in found.items()} if found is not None else None


def test_each_value_has_a_default_and_a_schema() -> None:
    values = shape(yaml.safe_load((CHART / "values.yaml").read_text()))
    known = named(json.loads(SCHEMA.read_text()))
    del known["global"]  # Helm's own.
    assert values.keys() == known.keys()
    for key, fields in known.items():
        # What is free to name, and what has no default: flags, requests and limits, labels.
        assert values[key] in ({}, None) or {*values[key]} == {*fields}, key


def test_what_nobody_knows_is_refused_wherever_the_chart_names_fields() -> None:
    open_ones = [
        path
        for path, node in nodes(json.loads(SCHEMA.read_text()))
        if "properties" in node and node.get("additionalProperties") is not False
    ]
    assert not open_ones


def nodes(node: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(node, dict):
        return []
    below = [each for key, value in node.items() for each in nodes(value, f"{path}/{key}")]
    return [*([(path, node)] if "type" in node else []), *below]


def test_every_field_says_what_it_means() -> None:
    values = (CHART / "values.yaml").read_text().splitlines()
    lines = [number for number, line in enumerate(values) if line and line[0].isalpha()]
    for first, last in zip(lines, [*lines[1:], len(values)], strict=True):
        assert any(line.lstrip().startswith("#") for line in values[first - 1 : last]), values[
            first
        ]
