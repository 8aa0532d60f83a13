"""The forms of entries, read without Reserver's code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.promises.amounts import amount, duration, moment, pod_requests
from hack.promises.entries import Entry, Ref, read_key


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "2", 2000),
        ("cpu", "1500m", 1500),
        ("cpu", "0.1", 100),
        ("cpu", "1n", 1),
        ("memory", "4Gi", 4 << 30),
        ("memory", "1k", 1000),
        ("memory", "1e3", 1000),
        ("memory", "2E", 2 * 10**18),
        ("memory", "1.5Ki", 1536),
        ("memory", "100m", 1),
    ],
)
def test_quantities(resource: str, text: str, expected: int) -> None:
    assert amount(resource, text) == expected


@pytest.mark.parametrize("text", ["", "two", "1 Gi", "4gi", "1ki"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        amount("cpu", text)


def _container(cpu: str, **more: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 1000),
        ({"initContainers": [_container("3")]}, 3000),
        ({"initContainers": [_container("500m", restartPolicy="Always")]}, 1500),
        ({"initContainers": [_container("1", restartPolicy="Always"), _container("2")]}, 3000),
        ({"initContainers": [_container("2"), _container("1", restartPolicy="Always")]}, 2000),
        ({"overhead": {"cpu": "250m"}}, 1250),
        ({"resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}}, 5000),
    ],
    ids=["plain", "init", "sidecar", "sidecar-then-init", "init-then-sidecar", "overhead", "pod"],
)
def test_requests(spec: dict[str, Any], expected: int) -> None:
    assert pod_requests({"containers": [_container("1")], **spec}) == {"cpu": expected, "pods": 1}


def test_moments_and_durations() -> None:
    assert moment(1_900_000_000) == moment("2030-03-17T17:46:40Z") == 1_900_000_000
    assert moment("2030-03-17t18:46:40+01:00") == 1_900_000_000
    assert (duration("1h30m"), duration("0"), duration("500ms")) == (5400.0, 0.0, 0.5)
    for bad in (True, None, "2030-03-17T17:46:40", "soon"):
        with pytest.raises(ValueError, match=r".+"):
            moment(bad)
    with pytest.raises(ValueError, match="not a duration"):
        duration("1 day")


SPEC = """
# A comment.
owners:
- pod: {name: web-0}
- pod: {name: web-1, namespace: other}
node: w-1
resources: {cpu: 2, memory: 4Gi}
slots: 2
startsAt: 2030-03-17T17:46:40Z
ttl: 90m
policy: Require
"""


def test_the_spec_form_in_yaml_and_json() -> None:
    expected = Entry(
        node="w-1",
        owners=frozenset({"shop/web-0", "other/web-1"}),
        resources={"cpu": 2000, "memory": 4 << 30, "pods": 1},
        slots=2,
        starts=1_900_000_000,
        ttl_s=5400,
        require=True,
    )
    assert read_key("shop/holds", "a", SPEC) == {Ref("shop/holds", "a"): expected}


def test_no_ttl_is_a_day_and_0_is_for_ever() -> None:
    spec = {"owners": [{"pod": {"name": "a"}}], "node": "n", "resources": {"cpu": 1}}
    for more, ttl_s in (({}, 24 * 3600), ({"ttl": 0}, None), ({"ttl": "5s"}, 5)):
        (entry,) = read_key("shop/holds", "a", json.dumps({**spec, **more})).values()
        assert entry.ttl_s == ttl_s


@pytest.mark.parametrize("text", ["{", "5", "owners: []", '{"owners": [], "node": "n"}', "a: b"])
def test_a_broken_entry_is_kept_as_it_is(text: str) -> None:
    assert read_key("shop/holds", "a", text) == {Ref("shop/holds", "a"): Entry(broken=text)}


def test_of_two_items_for_one_pod_the_first_counts() -> None:
    item = {"pod": "a", "namespace": "shop", "cpu": 1, "mem": 0, "expire": 5}
    entries = read_key("shop/holds", "n", json.dumps([item, {**item, "cpu": 2}]))
    first = entries.pop(Ref("shop/holds", "n", "shop/a"))
    assert first.resources["cpu"] == 1
    (second,) = entries.values()
    assert second.broken
