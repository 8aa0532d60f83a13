"""The chart's schema and values are of one mind, and know the flags of Reserver."""

import json
import re
from typing import Any

import yaml

from hack import dist
from hack.chart import CHART, README, SCHEMA, defaults, leaves, readme, schema
from reserver.settings.configuration import entries
from reserver.stores.codec.spec_codec import convert


def test_the_schema_knows_the_flags() -> None:
    assert schema() == SCHEMA.read_text(), "run `make cli-reference`"


def test_the_table_of_values_is_that_of_the_schema() -> None:
    assert readme() == README.read_text(), "run `make cli-reference`"


def test_each_value_has_a_default_and_a_schema_that_says_what_it_means() -> None:
    known = dict(leaves(json.loads(SCHEMA.read_text())))
    assert sorted(known) == sorted(given(defaults(), {*known}))
    assert all(each["description"] for each in known.values())


def given(values: dict[str, Any], known: set[str], path: str = "") -> list[str]:
    """Return the paths of values, down to the names that the chart documents."""
    found: list[str] = []
    for key, value in values.items():
        name = f"{path}{key}"
        is_leaf = name in known or not isinstance(value, dict)
        found += [name] if is_leaf else given(value, known, f"{name}.")
    return found


def test_a_setting_and_the_field_that_replaces_it_are_compared() -> None:
    check = (CHART / "templates/check.yaml").read_text()
    _, _, pairs = check.partition("range $setting, $field := dict\n")
    compared = dict(re.findall(r'"(.+)" "(.+)"', pairs.partition("}}")[0]))
    settings = json.loads(SCHEMA.read_text())["properties"]["settings"]["properties"]
    replaced = {each.of.name.removeprefix("--"): each.path for each in entries()}
    assert compared == {name: path for name, path in replaced.items() if name in settings}


def test_the_image_is_that_of_this_version_unless_another_is_named() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == dist.version()
    assert defaults()["image"]["tag"] == ""


def test_artifact_hub_is_told_of_each_crd_and_of_an_example_that_is_valid() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    reported = yaml.safe_load(chart["annotations"]["artifacthub.io/crds"])
    shipped = [
        crd
        for path in (CHART / "manifests").resolve().rglob("crd*.yaml")
        for crd in yaml.safe_load_all(path.read_text())
    ]
    assert {(each["name"], each["kind"], each["version"]) for each in reported} == {
        (crd["metadata"]["name"], crd["spec"]["names"]["kind"], version["name"])
        for crd in shipped
        for version in crd["spec"]["versions"]
    }
    assert all(each["displayName"] and each["description"] for each in reported)
    examples = chart["annotations"]["artifacthub.io/crdsExamples"]
    (reservation,) = yaml.safe_load(examples)
    convert(reservation["spec"])


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
