"""`preflight` on stored reservations: invalid ones, bounds, quotas and unknown fields."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from reserver.cli import preflight, preflight_files, preflight_holds
from reserver.reservations.quota import Quota
from tests.unit.cli.preflight.objects import HOME, OWN, SPEC, keys, reservation


def said(status: str = "Active", digest: str = "d") -> str:
    return json.dumps({"phase": status, "backed": True, "digest": digest})


def checks(found: Any) -> list[str]:
    return [f"{each.check}: {each}" for each in found]


def test_what_holds_and_is_read_alike_needs_nothing() -> None:
    written = [
        *keys({"a": said()}, a=SPEC),
        reservation(OWN, {}),
    ]
    assert not checks(preflight_holds.of_entries(written))


def test_what_would_be_invalid_or_beyond_a_bound_or_has_no_status_is_named() -> None:
    wrong = SPEC | {"slots": 0}
    many = SPEC | {"owners": [{"pod": {"name": f"w-{n}"}} for n in range(150)]}
    written = [
        *keys({"lost": said(), "old": said("Invalid")}, lost=wrong, old=wrong, new=SPEC),
        reservation(many, {}),
        reservation(OWN, {"observedGeneration": 0}),
    ]
    lost, beyond, unread = checks(preflight_holds.of_entries(written))
    assert lost.startswith(
        f"entries: 1 would be Invalid: {HOME}/reservations/lost: slots: 0 is out"
    )
    assert lost.endswith("; correct them before the upgrade")
    assert beyond.startswith("bounds: 1 hold on, and exceed a bound: shop/web: spec.owners: 150")
    assert unread.startswith(
        f"status: 2 have no status yet: {HOME}/reservations/new, shop/web; wait"
    )


def test_of_many_some_are_named() -> None:
    written = keys(
        dict.fromkeys("abcdefg", said()), **dict.fromkeys("abcdefg", SPEC | {"slots": 0})
    )
    (line,) = checks(preflight_holds.of_entries(written))
    assert "7 would be Invalid" in line
    assert " and 2 more; correct" in line
    assert "/f: " not in line


SCHEMA = {
    "properties": {
        "owners": {"items": {"properties": {"pod": {"properties": {"name": {}, "namespace": {}}}}}},
        "resources": {"additionalProperties": {"type": "string"}},
        "node": {},
        "placement": {"x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}},
    }
}
UNKNOWN = partial(preflight_files.unknown_fields, schema=SCHEMA)


@pytest.mark.parametrize("is_strict", [True, False])
def test_fields_that_the_other_version_lacks_are_named(*, is_strict: bool) -> None:
    more = {"retain": True, "placement": {"b": 1}}
    seat = SPEC | {"owners": [{"pod": {"name": "w"}, "replaces": {"uid": "u"}}]}
    written = [
        *keys({}, a=SPEC | more, b=SPEC),
        reservation(SPEC | more, {}),
        reservation(seat, {}),
    ]
    found = list(preflight_holds.of_fields(written, UNKNOWN, is_strict=is_strict))
    assert [each.is_ok for each in found] == [not is_strict, False, False]
    key, lost, of_seat = map(str, found)
    assert "retain" in key
    assert ("would be Invalid, and hold nothing" in key) is is_strict
    assert lost == "1 would lose retain: shop/web; write it again afterwards"
    assert of_seat.startswith(
        "1 would lose owners[].replaces: shop/web; run `kubectl delete podmoves "
    )


@pytest.mark.parametrize(
    ("field", "command"),
    [
        ({"lend": {"belowPriority": 0}}, "`kubectl --namespace shop patch reservation web "),
        ({"schedule": {"every": "22:00"}}, "`kubectl --namespace shop delete reservation web`"),
        ({"nodes": {"count": 1}}, "`kubectl --namespace shop delete reservation web`, and taint"),
    ],
)
@pytest.mark.parametrize("is_strict", [True, False])
def test_a_field_that_bounds_what_is_held_or_lent_goes_first(
    field: dict[str, Any], command: str, *, is_strict: bool
) -> None:
    written = [*keys({}, a=SPEC | field), reservation(SPEC | field, {})]
    key, lost = preflight_holds.of_fields(written, UNKNOWN, is_strict=is_strict)
    assert (key.is_ok, lost.is_ok) == (False, False)
    what = "it" if "lend" in field else "the entry"
    edit = f"`kubectl --namespace {HOME} edit configmap reservations`"
    assert key.remedy == f"for each, remove {what} first: {edit}"
    assert command in lost.remedy


def test_what_exceeds_a_quota_that_is_new_is_named() -> None:
    default = Quota(name="default", hard={"held.cpu": 3000}, max_ttl=3600.0)
    small = reservation(OWN | {"ttl": "1h"}, {})
    for written, expected in (([small], 1), ([small, small], 1), (keys({}, a=SPEC), 0)):
        for quota in (default, None):
            found = list(preflight_holds.of_quotas(written, quota, HOME))
            assert len(found) == (expected if quota else 0)
    assert not list(preflight_holds.of_quotas([small], default, "shop"))
    (line,) = checks(preflight_holds.of_quotas([small, small], default, HOME))
    assert line.startswith("quotas: shop: exceeded quota: default, requested: ")


def test_each_field_that_the_first_version_lacks_is_named() -> None:
    """The CRD of the first version is fixed, so each field that is added later is named."""
    unknown = preflight._unknown_to({}, (0, 1))
    spec = SPEC | {"lend": {}, "someday": 1, "placements": []}
    spec["owners"] = [{"pod": {"name": "w"}, "replaces": {}}]
    assert list(unknown(spec)) == ["lend", "owners[].replaces", "someday"]
    assert not list(unknown(SPEC))
    assert not list(unknown([{"pod": "w"}]))
    (lent,) = preflight_holds.of_fields(
        [reservation(SPEC | {"lend": {"belowPriority": 1}}, {})], unknown, is_strict=True
    )
    assert "borrowers" in lent.remedy


def test_what_the_command_of_this_version_has_is_no_field_of_a_newer_one() -> None:
    unknown = preflight._unknown_to({}, preflight._own())
    assert not list(unknown(SPEC | {"lend": {"belowPriority": 1}}))
