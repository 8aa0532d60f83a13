"""Server-side apply: what field managers want, and how they get along."""

from __future__ import annotations

from tests.contract.api import APPLY_PATCH, Answer, Api, Json


def _config(data: Json | None = None, **metadata: object) -> Json:
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", **metadata}}
    return body | ({"data": data} if data else {})


def _managers(answer: Answer) -> dict[str, set[str]]:
    """Return the data keys that each manager has."""
    return {
        entry["manager"]: {
            field.removeprefix("f:")
            for field in entry["fieldsV1"].get("f:data", {})
            if field != "."
        }
        for entry in answer.body["metadata"]["managedFields"]
    }


async def test_what_is_not_there_is_created(api: Api) -> None:
    path = api.path("configmaps", "one")
    made = await api.apply(path, _config({"a": "1"}, labels={"x": "y"}), "team")
    assert (made.status, made.body["data"]) == (201, {"a": "1"})
    (entry,) = made.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("team", "Apply", "v1")
    assert entry["fieldsV1"] == {
        "f:data": {"f:a": {}},
        "f:metadata": {"f:labels": {"f:x": {}}},
    }
    again = await api.apply(path, _config({"a": "1"}, labels={"x": "y"}), "team")
    assert (again.status, again.revision) == (200, made.revision)


async def test_what_a_manager_no_longer_wants_goes(api: Api) -> None:
    path = api.path("configmaps", "one")
    await api.apply(path, _config({"a": "1", "b": "2"}), "team")
    changed = await api.apply(path, _config({"b": "3"}), "team")
    assert changed.body["data"] == {"b": "3"}
    assert _managers(changed) == {"team": {"b"}}


async def test_managers_share_an_object_and_each_takes_away_only_its_own(api: Api) -> None:
    path = api.path("configmaps", "one")
    await api.apply(path, _config({"a": "1", "both": "x"}), "team")
    shared = await api.apply(path, _config({"b": "2", "both": "x"}), "others")
    assert shared.body["data"] == {"a": "1", "b": "2", "both": "x"}
    assert _managers(shared) == {"team": {"a", "both"}, "others": {"b", "both"}}
    left = await api.apply(path, _config(), "team")
    assert left.body["data"] == {"b": "2", "both": "x"}


async def test_another_managers_field_is_a_conflict_unless_forced(api: Api) -> None:
    path = api.path("configmaps", "one")
    await api.apply(path, _config({"a": "1"}), "team")
    refused = await api.apply(path, _config({"a": "2"}), "others")
    assert refused.outline == (409, "Conflict")
    assert refused.body["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "team"',
            "field": ".data.a",
        }
    ]
    assert refused.body["message"] == (
        'Apply failed with 1 conflict: conflict with "team": .data.a'
    )
    taken = await api.apply(path, _config({"a": "2"}), "others", force="true")
    assert taken.body["data"] == {"a": "2"}
    assert _managers(taken) == {"others": {"a"}}


async def test_who_changes_a_field_otherwise_manages_it(api: Api) -> None:
    path = api.path("configmaps", "one")
    await api.apply(path, _config({"a": "1", "b": "2"}), "team")
    await api.send(
        "PATCH",
        path,
        {"data": {"a": "9"}},
        media="application/merge-patch+json",
        query={"fieldManager": "editor"},
    )
    assert _managers(await api.get(path)) == {"team": {"b"}, "editor": {"a"}}
    refused = await api.apply(path, _config({"a": "1", "b": "2"}), "team")
    assert refused.outline == (409, "Conflict")
    assert 'conflict with "editor" using v1: .data.a' in refused.body["message"]


async def test_what_was_created_otherwise_stays(api: Api) -> None:
    await api.config_map("one", {"a": "1"})
    path = api.path("configmaps", "one")
    assert (await api.apply(path, _config({"a": "2"}), "team")).outline == (409, "Conflict")
    added = await api.apply(path, _config({"b": "2"}), "team")
    assert added.body["data"] == {"a": "1", "b": "2"}


async def test_items_of_a_list_have_managers_of_their_own(api: Api) -> None:
    await api.apply(api.path("configmaps", "one"), _config(finalizers=["a.io/a"]), "team")
    shared = await api.apply(
        api.path("configmaps", "one"), _config(finalizers=["b.io/b"]), "others"
    )
    assert sorted(shared.body["metadata"]["finalizers"]) == ["a.io/a", "b.io/b"]
    left = await api.apply(api.path("configmaps", "one"), _config(), "team")
    assert left.body["metadata"]["finalizers"] == ["b.io/b"]
    await api.patch(api.path("configmaps", "one"), {"metadata": {"finalizers": None}})


async def test_an_apply_needs_a_manager_a_type_and_known_fields(api: Api) -> None:
    path = api.path("configmaps", "one")
    nobody = await api.send("PATCH", path, _config(), media=APPLY_PATCH)
    assert nobody.outline == (422, "Invalid")
    untyped = await api.apply(path, {"metadata": {"name": "one"}}, "team")
    assert untyped.status == 400
    surplus = await api.apply(path, _config() | {"surplus": 1}, "team")
    assert surplus.status == 500
    assert surplus.body["message"].endswith(".surplus: field not declared in schema")
    assert (await api.get(path)).status == 404


async def test_a_dry_run_leaves_nothing(api: Api) -> None:
    path = api.path("configmaps", "one")
    assert (await api.apply(path, _config({"a": "1"}), "team", dryRun="All")).status == 201
    assert (await api.get(path)).status == 404


async def test_yaml_is_applied_as_json_is(api: Api) -> None:
    path = api.path("configmaps", "one")
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '2020-01-01'\n"
    made = await api.apply(path, text, "team")
    assert (made.status, made.body["data"]) == (201, {"a": "2020-01-01"})
