"""Creating, reading, replacing and deleting objects."""

import pytest

from tests.contract.api import Api, Json


async def test_a_created_object_has_identity_and_revision(api: Api) -> None:
    made = await api.config_map("one", {"a": "1"}, labels={"app": "x"})
    assert made.status == 201
    metadata = made.body["metadata"]
    assert (made.body["kind"], made.body["apiVersion"]) == ("ConfigMap", "v1")
    assert metadata["uid"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert metadata["namespace"] == api.namespace
    read = await api.get(api.path("configmaps", "one"))
    assert read.body == made.body


async def test_revisions_grow_over_all_resources(api: Api) -> None:
    first = await api.config_map("one")
    second = await api.pod("two")
    third = await api.patch(api.path("configmaps", "one"), {"data": {"b": "2"}})
    assert int(first.revision) < int(second.revision) < int(third.revision)


async def test_kind_and_version_may_be_left_out_but_not_wrong(api: Api) -> None:
    wrong_kind = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}}
    answer = await api.post(api.path("configmaps"), wrong_kind)
    assert answer.outline == (400, "BadRequest")
    wrong_version = {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "x"}}
    answer = await api.post(api.path("configmaps"), wrong_version)
    assert answer.outline == (400, "BadRequest")


async def test_names_can_be_generated(api: Api) -> None:
    made = await api.post(api.path("configmaps"), {"metadata": {"generateName": "batch-"}})
    assert made.body["metadata"]["name"].startswith("batch-")
    assert len(made.body["metadata"]["name"]) == len("batch-") + 5
    assert made.body["metadata"]["generateName"] == "batch-"


async def test_a_name_is_taken_once(api: Api) -> None:
    await api.config_map("one")
    again = await api.config_map("one")
    assert again.outline == (409, "AlreadyExists")
    assert again.body["message"] == 'configmaps "one" already exists'
    assert again.body["details"] == {"name": "one", "kind": "configmaps"}


async def test_a_name_is_taken_until_its_object_is_gone(api: Api) -> None:
    await api.config_map("one", finalizers=["example.com/hold"])
    await api.delete(api.path("configmaps", "one"))
    again = await api.config_map("one")
    assert again.outline == (409, "AlreadyExists")
    assert again.body["message"] == ('object is being deleted: configmaps "one" already exists')
    await api.patch(api.path("configmaps", "one"), {"metadata": {"finalizers": None}})


async def test_a_missing_object_is_not_found(api: Api) -> None:
    for answer in (
        await api.get(api.path("configmaps", "none")),
        await api.delete(api.path("configmaps", "none")),
        await api.patch(api.path("configmaps", "none"), {"data": {}}),
    ):
        assert answer.outline == (404, "NotFound")
        assert answer.body["message"] == 'configmaps "none" not found'
        assert answer.body["details"] == {"name": "none", "kind": "configmaps"}
        assert answer.body["status"] == "Failure"
        assert answer.body["code"] == 404


async def test_the_namespace_has_to_exist(api: Api) -> None:
    body = {"metadata": {"name": "one"}}
    answer = await api.post("/api/v1/namespaces/nowhere/configmaps", body)
    assert answer.outline == (404, "NotFound")
    assert answer.body["message"] == 'namespaces "nowhere" not found'


async def test_the_namespace_has_to_match_the_path(api: Api) -> None:
    answer = await api.config_map("one", namespace="other")
    assert answer.outline == (400, "BadRequest")


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "a" * 254, "a..b"])
async def test_names_are_dns_subdomains(api: Api, name: str) -> None:
    answer = await api.config_map(name)
    assert answer.outline == (422, "Invalid")
    (cause,) = answer.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "metadata.name")
    assert answer.body["message"].startswith(f'ConfigMap "{name}" is invalid: metadata.name: ')


async def test_a_name_is_required(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), {"metadata": {}})
    assert answer.outline == (422, "Invalid")
    assert "name or generateName is required" in answer.body["message"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a b": "x"}},
        {"labels": {"a": "with space"}},
        {"labels": {"a": "x" * 64}},
        {"annotations": {"a/b/c": "x"}},
        {"annotations": {"a": "x" * (256 * 1024)}},
    ],
)
async def test_labels_and_annotations_follow_rules(
    api: Api, metadata: dict[str, dict[str, str]]
) -> None:
    answer = await api.config_map("one", **metadata)
    assert answer.outline == (422, "Invalid")


async def test_a_revision_may_not_be_set_at_creation(api: Api) -> None:
    answer = await api.config_map("one", resourceVersion="5")
    assert answer.outline == (500, "")
    assert answer.body["message"] == "resourceVersion should not be set on objects to be created"


async def test_a_stale_replacement_conflicts(api: Api) -> None:
    made = await api.config_map("one")
    await api.patch(api.path("configmaps", "one"), {"data": {"b": "2"}})
    stale = await api.put(api.path("configmaps", "one"), {**made.body, "data": {"c": "3"}})
    assert stale.outline == (409, "Conflict")
    assert stale.body["message"] == (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert stale.body["details"] == {"name": "one", "kind": "configmaps"}


async def test_a_replacement_without_revision_is_unconditional(api: Api) -> None:
    made = await api.config_map("one")
    body = {"metadata": {"name": "one"}, "data": {"c": "3"}}
    replaced = await api.put(api.path("configmaps", "one"), body)
    assert replaced.status == 200
    assert replaced.body["data"] == {"c": "3"}
    assert replaced.body["metadata"]["uid"] == made.body["metadata"]["uid"]


async def test_a_replacement_names_the_right_object(api: Api) -> None:
    made = await api.config_map("one")
    path = api.path("configmaps", "one")
    other_name = await api.put(path, {"metadata": {"name": "two"}})
    assert other_name.outline == (400, "BadRequest")
    uid = {"name": "one", "uid": "11111111-2222-3333-4444-555555555555"}
    other_uid = await api.put(path, {**made.body, "metadata": uid})
    assert other_uid.outline == (409, "Conflict")
    assert "Precondition failed: UID in precondition: " in other_uid.body["message"]


async def test_an_update_that_changes_nothing_is_no_write(api: Api) -> None:
    made = await api.config_map("one", {"a": "1"})
    path = api.path("configmaps", "one")
    assert (await api.put(path, made.body)).revision == made.revision
    assert (await api.patch(path, {"data": {"a": "1"}})).revision == made.revision


async def test_a_trial_leaves_no_trace(api: Api) -> None:
    body = {"metadata": {"name": "one"}}
    trial = await api.post(api.path("configmaps"), body, dryRun="All")
    assert trial.status == 201
    assert (await api.get(api.path("configmaps", "one"))).status == 404
    assert (await api.post(api.path("configmaps"), body, dryRun="Some")).status == 422


async def test_a_deletion_is_answered_with_a_status(api: Api) -> None:
    made = await api.config_map("one")
    gone = await api.delete(api.path("configmaps", "one"))
    assert gone.status == 200
    assert gone.body["status"] == "Success"
    assert gone.body["details"] == {
        "name": "one",
        "kind": "configmaps",
        "uid": made.body["metadata"]["uid"],
    }
    assert (await api.get(api.path("configmaps", "one"))).status == 404


async def test_a_deletion_can_have_preconditions(api: Api) -> None:
    made = await api.config_map("one")
    path = api.path("configmaps", "one")
    wrong = await api.delete(path, {"preconditions": {"uid": "someone-else"}})
    assert wrong.outline == (409, "Conflict")
    wrong = await api.delete(path, {"preconditions": {"resourceVersion": "1"}})
    assert wrong.outline == (409, "Conflict")
    right = {"uid": made.body["metadata"]["uid"], "resourceVersion": made.revision}
    assert (await api.delete(path, {"preconditions": right})).status == 200


async def test_finalizers_hold_a_deletion_up(api: Api) -> None:
    await api.config_map("one", finalizers=["example.com/hold"])
    path = api.path("configmaps", "one")
    held = await api.delete(path)
    assert held.status == 200
    assert held.body["kind"] == "ConfigMap"
    assert held.body["metadata"]["deletionTimestamp"]
    assert held.body["metadata"]["deletionGracePeriodSeconds"] == 0
    more = await api.patch(path, {"metadata": {"finalizers": ["example.com/hold", "a.io/b"]}})
    assert more.outline == (422, "Invalid")
    freed = await api.patch(path, {"metadata": {"finalizers": None}})
    assert freed.status == 200
    assert (await api.get(path)).status == 404


async def test_many_objects_can_be_deleted_by_label(api: Api) -> None:
    await api.config_map("one", labels={"go": "yes"})
    await api.config_map("two", labels={"go": "yes"})
    await api.config_map("three")
    gone = await api.delete(api.path("configmaps"), labelSelector="go=yes")
    assert gone.status == 200
    assert gone.body["kind"] == "ConfigMapList"
    left = await api.get(api.path("configmaps"), labelSelector="go=yes")
    assert left.names == []
    assert (await api.get(api.path("configmaps", "three"))).status == 200


async def test_a_namespace_takes_its_objects_along(api: Api) -> None:
    await api.config_map("one")
    query = {"fieldSelector": f"metadata.name={api.namespace}"}
    async with api.watch("/api/v1/namespaces", **query) as watching:
        assert (await watching.next())[0] == "ADDED"
        gone = await api.delete(f"/api/v1/namespaces/{api.namespace}")
        assert gone.status == 200
        assert gone.body["metadata"]["deletionTimestamp"]
        assert gone.body["status"]["phase"] == "Terminating"
        while (await watching.next())[0] != "DELETED":
            continue
    assert (await api.get(api.path("configmaps", "one"))).status == 404


async def test_a_new_namespace_is_active_and_labelled(api: Api) -> None:
    home = await api.get(f"/api/v1/namespaces/{api.namespace}")
    assert home.body["status"]["phase"] == "Active"
    assert home.body["metadata"]["labels"] == {"kubernetes.io/metadata.name": api.namespace}
    assert home.body["spec"] == {"finalizers": ["kubernetes"]}


async def test_a_budget_begins_uncounted_and_says_one_thing(api: Api) -> None:
    path = "/apis/policy/v1/namespaces/" + api.namespace + "/poddisruptionbudgets"
    spec: Json = {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
    both = {"metadata": {"name": "web"}, "spec": spec | {"maxUnavailable": 1}}
    refused = await api.post(path, both)
    assert refused.outline == (422, "Invalid")
    assert refused.body["details"]["causes"][0]["field"] == "spec"
    made = await api.post(path, {"metadata": {"name": "web"}, "spec": spec}, dryRun="All")
    assert made.status == 201
    assert (made.body["spec"], made.body["metadata"]["generation"]) == (spec, 1)
    counts = {"currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"}
    assert made.body["status"] == dict.fromkeys(counts, 0)
    assert (await api.get("/apis/policy/v1/poddisruptionbudgets")).status == 200
