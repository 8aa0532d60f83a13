"""Patching: merge, JSON and strategic merge patches."""

import pytest

from tests.contract.api import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Api, Json

PATCH_TYPES = [MERGE_PATCH, JSON_PATCH, STRATEGIC_PATCH]


async def _data_after(api: Api, body: object, media: str) -> Json:
    await api.config_map("one", {"a": "1", "b": "2"})
    answer = await api.patch(api.path("configmaps", "one"), body, media)
    assert answer.status == 200, answer.body
    data: Json = answer.body["data"]
    return data


async def test_a_merge_patch_sets_and_removes(api: Api) -> None:
    patch = {"data": {"a": None, "c": "3"}}
    assert await _data_after(api, patch, MERGE_PATCH) == {"b": "2", "c": "3"}


async def test_a_json_patch_does_its_operations_in_order(api: Api) -> None:
    patch = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "replace", "path": "/data/a", "value": "x"},
        {"op": "remove", "path": "/data/b"},
        {"op": "copy", "from": "/data/a", "path": "/data/copied"},
        {"op": "move", "from": "/data/c", "path": "/data/moved"},
    ]
    assert await _data_after(api, patch, JSON_PATCH) == {"a": "x", "copied": "x", "moved": "3"}


async def test_a_json_patch_escapes_slashes_in_keys(api: Api) -> None:
    await api.config_map("one", annotations={"a.io/b": "1"})
    patch = [{"op": "remove", "path": "/metadata/annotations/a.io~1b"}]
    answer = await api.patch(api.path("configmaps", "one"), patch, JSON_PATCH)
    assert "annotations" not in answer.body["metadata"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "other"},
        {"op": "test", "path": "/data/none", "value": "x"},
        {"op": "test", "path": "/none/deeper", "value": None},
        {"op": "remove", "path": "/data/none"},
        {"op": "replace", "path": "/none/deeper", "value": "x"},
        {"op": "add", "path": "/none/deeper", "value": "x"},
        {"op": "move", "from": "/data/none", "path": "/data/x"},
        {"op": "dance", "path": "/data/a"},
    ],
)
async def test_an_operation_that_cannot_be_done_is_unprocessable(api: Api, operation: Json) -> None:
    made = await api.config_map("one", {"a": "1"})
    path = api.path("configmaps", "one")
    patch = [{"op": "add", "path": "/data/new", "value": "x"}, operation]
    answer = await api.patch(path, patch, JSON_PATCH)
    assert answer.outline == (422, "Invalid")
    # All of its operations or none.
    assert (await api.get(path)).body == made.body


async def test_a_missing_key_tests_as_null(api: Api) -> None:
    patch = [
        {"op": "test", "path": "/data/c", "value": None},
        {"op": "add", "path": "/data/c", "value": "3"},
    ]
    assert await _data_after(api, patch, JSON_PATCH) == {"a": "1", "b": "2", "c": "3"}


async def test_a_missing_key_can_be_replaced(api: Api) -> None:
    patch = [{"op": "replace", "path": "/data/c", "value": "3"}]
    assert await _data_after(api, patch, JSON_PATCH) == {"a": "1", "b": "2", "c": "3"}


async def test_a_present_key_does_not_test_as_null(api: Api) -> None:
    await api.config_map("one", {"a": "1"})
    patch = [{"op": "test", "path": "/data/a", "value": None}]
    answer = await api.patch(api.path("configmaps", "one"), patch, JSON_PATCH)
    assert answer.outline == (422, "Invalid")


async def test_a_test_of_the_revision_is_a_precondition(api: Api) -> None:
    made = await api.config_map("one", {"a": "1"})
    path = api.path("configmaps", "one")
    patch = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": made.revision},
        {"op": "add", "path": "/data/b", "value": "2"},
    ]
    assert (await api.patch(path, patch, JSON_PATCH)).status == 200
    assert (await api.patch(path, patch, JSON_PATCH)).outline == (422, "Invalid")


async def test_lists_are_patched_by_index(api: Api) -> None:
    await api.config_map("one", finalizers=["a.io/a", "a.io/b"])
    path = api.path("configmaps", "one")
    patch = [
        {"op": "add", "path": "/metadata/finalizers/-", "value": "a.io/d"},
        {"op": "add", "path": "/metadata/finalizers/2", "value": "a.io/c"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    answer = await api.patch(path, patch, JSON_PATCH)
    assert answer.body["metadata"]["finalizers"] == ["a.io/b", "a.io/c", "a.io/d"]
    beyond = [{"op": "remove", "path": "/metadata/finalizers/7"}]
    assert (await api.patch(path, beyond, JSON_PATCH)).outline == (422, "Invalid")
    await api.patch(path, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_patch_can_presume_a_revision(api: Api, media: str) -> None:
    made = await api.config_map("one", {"a": "1"})
    path = api.path("configmaps", "one")
    patch = {"metadata": {"resourceVersion": made.revision}, "data": {"a": "2"}}
    assert (await api.patch(path, patch, media)).status == 200
    patch["data"] = {"a": "3"}
    assert (await api.patch(path, patch, media)).outline == (409, "Conflict")


@pytest.mark.parametrize("media", PATCH_TYPES)
async def test_a_malformed_patch_is_a_bad_request(api: Api, media: str) -> None:
    await api.config_map("one")
    for body in (b"{", b'"text"', b"7"):
        answer = await api.send("PATCH", api.path("configmaps", "one"), body, media=media)
        assert answer.outline == (400, "BadRequest"), body


async def test_a_patch_has_to_name_its_type(api: Api) -> None:
    await api.config_map("one")
    answer = await api.patch(api.path("configmaps", "one"), {"data": {}}, JSON)
    assert answer.outline == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_patch_to_a_wrong_type_is_unprocessable(api: Api, media: str) -> None:
    await api.config_map("one")
    answer = await api.patch(api.path("configmaps", "one"), {"data": {"a": 7}}, media)
    assert answer.outline == (422, "Invalid")


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        ({"metadata": {"name": "two"}}, 400),
        ({"metadata": {"namespace": "elsewhere"}}, 400),
        ({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}}, 422),
        ({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}, 422),
        ({"metadata": {"deletionGracePeriodSeconds": 7}}, 422),
        ({"kind": "Pod"}, 422),
        ({"apiVersion": "v2"}, 422),
    ],
)
async def test_a_patch_cannot_change_identity(api: Api, patch: Json, status: int) -> None:
    await api.config_map("one")
    answer = await api.patch(api.path("configmaps", "one"), patch)
    assert answer.status == status


async def test_a_strategic_patch_merges_containers_by_name(api: Api) -> None:
    containers = [{"name": "a", "image": "one:1"}, {"name": "b", "image": "two:1"}]
    await api.pod("one", {"containers": containers})
    patch = {"spec": {"containers": [{"name": "b", "image": "two:2"}]}}
    answer = await api.patch(api.path("pods", "one"), patch, STRATEGIC_PATCH)
    images = [container["image"] for container in answer.body["spec"]["containers"]]
    assert images == ["one:1", "two:2"]


async def test_a_merge_patch_replaces_lists(api: Api) -> None:
    await api.pod("one")
    path = api.path("pods", "one", "status")
    for condition in ("example.com/a", "example.com/b"):
        patch = {"status": {"conditions": [{"type": condition, "status": "True"}]}}
        answer = await api.patch(path, patch)
    (left,) = answer.body["status"]["conditions"]
    assert left["type"] == "example.com/b"


async def test_a_strategic_patch_merges_conditions_by_type(api: Api) -> None:
    await api.pod("one")
    path = api.path("pods", "one", "status")
    for condition, status in (("a", "True"), ("b", "True"), ("a", "False")):
        entry = {"type": f"example.com/{condition}", "status": status}
        answer = await api.patch(path, {"status": {"conditions": [entry]}}, STRATEGIC_PATCH)
    found = {c["type"]: c["status"] for c in answer.body["status"]["conditions"]}
    assert found == {"example.com/a": "False", "example.com/b": "True"}


async def test_strategic_directives(api: Api) -> None:
    await api.config_map("one", finalizers=["a.io/a", "a.io/b"])
    path = api.path("configmaps", "one")
    added = {"metadata": {"finalizers": ["a.io/c"]}}
    answer = await api.patch(path, added, STRATEGIC_PATCH)
    assert sorted(answer.body["metadata"]["finalizers"]) == ["a.io/a", "a.io/b", "a.io/c"]
    removed = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.io/a"]}}
    answer = await api.patch(path, removed, STRATEGIC_PATCH)
    assert sorted(answer.body["metadata"]["finalizers"]) == ["a.io/b", "a.io/c"]
    replaced = {"data": {"$patch": "replace", "new": "x"}, "metadata": {"finalizers": None}}
    answer = await api.patch(path, replaced, STRATEGIC_PATCH)
    assert answer.body["data"] == {"new": "x"}


async def test_patches_of_what_the_server_keeps_are_ignored(api: Api) -> None:
    made = await api.config_map("one")
    patch = {
        "metadata": {
            "creationTimestamp": "2001-01-01T00:00:00Z",
            "generation": 7,
        },
        "data": {"b": "2"},
    }
    answer = await api.patch(api.path("configmaps", "one"), patch)
    metadata = answer.body["metadata"]
    assert metadata["creationTimestamp"] == made.body["metadata"]["creationTimestamp"]
    assert "generation" not in metadata
