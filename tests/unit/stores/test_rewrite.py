"""A reservation that is written anew in another store is the same one there."""

import json
from typing import Any

import pytest

from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref
from reserver.stores.codec import document, rewrite
from reserver.stores.configmap.entries import read_key
from reserver.stores.object.entries import read_object
from tests.builders import NOW
from tests.unit.stores.test_object_cache import made

OBJECT = Ref.of_object("home", "web")
SPEC: dict[str, Any] = {
    "owners": [{"pod": {"name": "a"}}],
    "node": "worker-1",
    "resources": {"cpu": 1.5, "memory": "4Gi", "nvidia.com/gpu": 1},
    "expiresAt": "2040-01-01T00:00:00.25+01:00",
}
SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ttl": "1h"},
        {"expiresAt": None, "ttl": 0},
        {"slots": 3, "policy": "Require", "startsAt": "2039-01-01T00:00:00Z", "reusable": True},
        {"preemptible": True, "priority": 5},
        {"owners": [{"selector": SELECTOR, "controller": {"kind": "ReplicaSet", "name": "x"}}]},
        {"owners": [{"pod": {"name": "a", "namespace": "bank"}}, {"pod": {"name": "b"}}]},
    ],
)
def test_an_entry_and_its_object_are_one_there_and_back(changes: dict[str, Any]) -> None:
    ref = Ref("shop", "store", "web")
    text = json.dumps(SPEC | changes)
    (entry,) = read_key(ref, text, NOW).reservations
    spec = rewrite.rewritten(entry, document.parse(text), OBJECT, "home")
    item = made("web", namespace="home", raw=json.dumps(spec))
    (moved,) = read_object(item, NOW + 9, "home").reservations
    assert moved.ref == OBJECT
    assert moved.identity == entry.identity

    back = rewrite.rewritten(moved, spec, ref, "home")
    (again,) = read_key(ref, json.dumps(back), NOW + 99).reservations
    assert again.identity == entry.identity


def test_where_it_is_placed_goes_into_an_entry_and_not_into_the_spec_of_an_object() -> None:
    ref, parts = Ref("shop", "store", "web"), [{"node": "worker-1", "slots": 2}]
    said = SPEC | {"node": "", "slots": 2, "placement": {"strategy": "spread"}}
    (entry,) = read_key(ref, json.dumps(said | {"placements": parts}), NOW).reservations
    spec = rewrite.rewritten(entry, said | {"placements": parts}, OBJECT, "home")
    assert "placements" not in spec
    status = {"phase": "Active", "observedGeneration": 1, "claimed": 0, "placements": parts}
    item = made(
        "web",
        namespace="home",
        raw=json.dumps(spec),
        status=status | {"claims": [], "conditions": []},
    )
    (moved,) = read_object(item, NOW, "home").reservations
    assert (moved.identity, moved.placed) == (entry.identity, entry.placed)
    back = rewrite.rewritten(moved, spec, ref, "home")
    (again,) = read_key(ref, json.dumps(back), NOW).reservations
    assert (again.identity, again.placed) == (entry.identity, entry.placed)


def test_an_object_that_was_never_moved_keeps_its_uid_in_mind() -> None:
    item = made("web", uid="some-uid", ttl="1h")
    (reservation,) = read_object(item, NOW, "home").reservations
    said = document.parse(bytes(item.spec).decode())
    spec = rewrite.rewritten(reservation, said, Ref("shop", "store", "web"), "home")
    assert spec["origin"] == "shop/web#some-uid"
    assert "ttl" not in spec
    (entry,) = read_key(Ref("shop", "store", "web"), json.dumps(spec), NOW).reservations
    assert entry.identity == reservation.identity


@pytest.mark.parametrize(
    "item",
    [
        {"pod": "a", "namespace": "shop", "cpu": 2000, "mem": 4096, "expire": 2_000_000_000},
        {"pod": "a", "namespace": "shop", "cpu": 0, "mem": 1, "expire": "2040-01-01T00:00:00.5Z"},
        {
            "reservingPod": "a",
            "reservingPodNamespace": "shop",
            "cpuMilli": 1,
            "memMilli": 0,
            "expireAt": 2_000_000_000,
        },
    ],
)
def test_an_item_of_a_list_and_its_object_are_one(item: dict[str, Any]) -> None:
    (entry,) = read_key(Ref("shop", "store", "worker-1"), json.dumps([item]), NOW).reservations
    spec = rewrite.rewritten(entry, {}, OBJECT, "home")
    name = rewrite.name_for(entry)
    assert name == f"a-{entry.digest}"
    made_of = made(name, namespace="home", raw=json.dumps(spec))
    (moved,) = read_object(made_of, NOW, "home").reservations
    assert moved.identity == entry.identity == f"shop/store/worker-1[shop/a]@{entry.digest}"


def test_a_name_never_grows_too_long() -> None:
    item = {"pod": "a." + "b" * 251, "namespace": "shop", "cpu": 1, "mem": 0, "expire": 2**31}
    (entry,) = read_key(Ref("shop", "store", "worker-1"), json.dumps([item]), NOW).reservations
    assert len(rewrite.name_for(entry)) <= 253


def test_owners_that_would_be_refused_there_stay() -> None:
    text = json.dumps(SPEC)
    (entry,) = read_key(Ref("shop", "store", "web"), text, NOW).reservations
    place = Ref.of_object("bank", "web")
    with pytest.raises(InvalidInput, match="'shop' is not the reservation's own"):
        rewrite.rewritten(entry, json.loads(text), place, "home")


@pytest.mark.parametrize("origin", ["x", "a/b/c/d", "a b/c", "/a", "a/b\n", "A/b", "x" * 2000])
def test_an_origin_that_is_no_place_is_refused(origin: str) -> None:
    text = json.dumps(SPEC | {"origin": origin})
    (problem,) = read_key(Ref("shop", "store", "web"), text, NOW).problems
    assert problem.error.path == "origin"


def test_an_owner_of_a_newer_version_is_not_moved() -> None:
    text = json.dumps(SPEC | {"owners": [{"workload": {"name": "a"}}]})
    (entry,) = read_key(Ref("shop", "store", "web"), text, NOW).reservations
    with pytest.raises(InvalidInput, match=r"owners: has only fields .*: workload; move it with"):
        rewrite.rewritten(entry, document.parse(text), OBJECT, "home")
