"""JSON, merge and strategic merge patches, where the contract tests do not go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver_demo.apiserver.patch import MAX_OPERATIONS, json_patch, merge_patch
from reserver_demo.apiserver.status import Json, StatusError
from reserver_demo.apiserver.strategic import strategic_merge

POD = "io.k8s.api.core.v1.Pod"
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
KEYS = st.text(alphabet="ab/~", min_size=1, max_size=2)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)


def _pointer(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")


@given(DOCUMENTS, KEYS, VALUES)
def test_what_is_added_can_be_tested_and_removed(document: Json, key: str, value: object) -> None:
    path = _pointer(key)
    add = {"op": "add", "path": path, "value": value}
    assert json_patch(document, [add]) == {**document, key: value}
    test = {"op": "test", "path": path, "value": value}
    removed = json_patch(document, [add, test, {"op": "remove", "path": path}])
    assert removed == {k: v for k, v in document.items() if k != key}


@given(DOCUMENTS, st.lists(st.builds(lambda k, v: (k, v), KEYS, VALUES), max_size=3))
def test_a_patch_leaves_its_document_alone(document: Json, edits: list[tuple[str, object]]) -> None:
    before = repr(document)
    json_patch(document, [{"op": "add", "path": _pointer(k), "value": v} for k, v in edits])
    merge_patch(document, dict(edits))
    assert repr(document) == before


@given(DOCUMENTS, DOCUMENTS)
def test_merging_twice_is_merging_once(document: Json, patch: Json) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


def test_the_merge_patches_of_the_rfc() -> None:
    for document, patch, result in (
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ):
        assert merge_patch(document, patch) == result


def test_a_json_patch_has_a_limit() -> None:
    operation = {"op": "add", "path": "/a", "value": 1}
    with pytest.raises(StatusError) as caught:
        json_patch({}, [operation] * (MAX_OPERATIONS + 1))
    assert caught.value.code == 413


def _pod(*names: str) -> Json:
    return {"spec": {"containers": [{"name": name, "image": f"{name}:1"} for name in names]}}


def _names(pod: Json) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def test_an_entry_is_deleted_by_its_key() -> None:
    patch = {"spec": {"containers": [{"name": "b", "$patch": "delete"}]}}
    assert _names(strategic_merge(_pod("a", "b", "c"), patch, POD)) == ["a", "c"]


def test_a_list_can_be_replaced() -> None:
    patch = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "z:1"}]}}
    assert _names(strategic_merge(_pod("a", "b"), patch, POD)) == ["z"]


def test_a_map_can_be_replaced_and_deleted() -> None:
    pod = {"metadata": {"labels": {"a": "1"}}}
    replaced = {"metadata": {"labels": {"$patch": "replace", "b": "2"}}}
    assert strategic_merge(pod, replaced, POD) == {"metadata": {"labels": {"b": "2"}}}
    deleted = {"metadata": {"labels": {"$patch": "delete"}}}
    assert strategic_merge(pod, deleted, POD) == {"metadata": {"labels": {}}}


def test_the_clients_order_is_kept_and_others_keep_their_place() -> None:
    order = [{"name": "d"}, {"name": "b"}, {"name": "n"}]
    patch = {
        "spec": {
            "$setElementOrder/containers": order,
            "containers": [{"name": "n", "image": "n:1"}],
        }
    }
    merged = strategic_merge(_pod("a", "b", "c", "d"), patch, POD)
    assert _names(merged) == ["a", "c", "d", "b", "n"]


def test_only_retained_keys_stay() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    entry = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    merged = strategic_merge(pod, {"spec": {"volumes": [entry]}}, POD)
    assert merged["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_lists_without_a_key_are_replaced() -> None:
    pod = {"spec": {"tolerations": [{"key": "a"}]}}
    patch = {"spec": {"tolerations": [{"key": "b"}]}}
    assert strategic_merge(pod, patch, POD)["spec"]["tolerations"] == [{"key": "b"}]


def test_an_entry_needs_its_key_and_a_directive_a_meaning() -> None:
    for patch, code in (
        ({"spec": {"containers": [{"image": "x"}]}}, 422),
        ({"spec": {"$patch": "dance"}}, 400),
    ):
        with pytest.raises(StatusError) as caught:
            strategic_merge(_pod("a"), patch, POD)
        assert caught.value.code == code
