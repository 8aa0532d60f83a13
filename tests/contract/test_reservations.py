"""Reservations as both servers have them; tests/e2e/test_crd_validation.py has the CRD's rules."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from reserver.errors import ApiError
from reserver.k8s.objects.objects import decode, encode
from reserver.stores.object.codec import ObjectMetadata
from reserver.stores.object.edits import replacement
from tests.contract.api import APPLY_PATCH, JSON_PATCH, STRATEGIC_PATCH, Answer, Api, Json, Watching

CRD = Path(__file__).parents[2] / "scheduler-config/core/crd.yaml"
GROUP = "/apis/reserver.io/v1alpha1"
SPEC: Json = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "2"}, "node": "worker-1"}
CONDITION = {
    "type": "Backed",
    "status": "True",
    "reason": "RoomHeld",
    "message": "",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
    "observedGeneration": 1,
}


@pytest.fixture
async def path(api: Api) -> str:
    """The Reservations of the test's namespace; on a real API server the CRD is installed first."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    path = f"{GROUP}/namespaces/{api.namespace}/reservations"
    if (await api.get(path)).status == 404:
        await api.post(crds, yaml.safe_load(CRD.read_text()))
    async with asyncio.timeout(30):
        while (await api.get(path)).status != 200:
            continue
    return path


async def create(api: Api, path: str, name: str = "one", **more: object) -> Answer:
    body = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
    return await api.post(path, {**body, "metadata": {"name": name}, "spec": SPEC} | more)


def is_overtaken(answer: Answer) -> bool:
    said = answer.body
    return ApiError(answer.status, said["reason"], said["message"]).is_overtaken


async def test_a_new_one_has_defaults_a_generation_and_no_status(api: Api, path: str) -> None:
    made = await create(api, path, status={"phase": "Active"})
    assert made.status == 201
    assert made.body["spec"] == SPEC | {"slots": 1, "policy": "Prefer"}
    assert made.body["metadata"]["generation"] == 1
    assert "status" not in made.body


async def test_the_generation_counts_changes_of_the_spec(api: Api, path: str) -> None:
    await create(api, path)
    one = f"{path}/one"
    labelled = await api.patch(one, {"metadata": {"labels": {"a": "b"}}})
    assert labelled.body["metadata"]["generation"] == 1
    resized = await api.patch(one, {"spec": {"slots": 2}})
    assert resized.body["metadata"]["generation"] == 2
    assert resized.body["spec"]["slots"] == 2


async def test_labels_are_set_beside_the_spec_as_long_as_it_is_the_one_seen(
    api: Api, path: str
) -> None:
    made = await create(api, path)
    of = decode(ObjectMetadata, json.dumps(made.body["metadata"]).encode())
    spec = json.dumps(made.body["spec"])

    async def label(**labels: str) -> Answer:
        patch = replacement(of, spec.encode(), spec, labels)
        return await api.patch(f"{path}/one", json.loads(encode(patch)), JSON_PATCH)

    first = await label(**{"example.com/team": "shop"})
    assert first.body["metadata"]["labels"] == {"example.com/team": "shop"}
    assert first.body["metadata"]["generation"] == 1
    assert is_overtaken(await label(a="b"))  # It has not seen that there are labels now.
    of = decode(ObjectMetadata, json.dumps(first.body["metadata"]).encode())
    more = await label(**{"example.com/team": "bank", "a": ""})
    assert more.body["metadata"]["labels"] == {"example.com/team": "bank", "a": ""}
    await api.patch(f"{path}/one", {"metadata": {"labels": None}})
    assert is_overtaken(await label(c="d"))  # It has not seen that they are gone.


async def test_spec_and_status_are_written_apart(api: Api, path: str) -> None:
    made = await create(api, path)
    status = {"phase": "Active", "claimed": 0, "expiresAt": None, "conditions": [CONDITION]}
    guard = {"uid": made.body["metadata"]["uid"], "resourceVersion": made.revision}
    change = {"metadata": guard | {"labels": {"a": "b"}}, "spec": {"slots": 9}, "status": status}
    said = await api.patch(f"{path}/one/status", change)
    assert said.status == 200, said.body
    assert said.body["status"]["phase"] == "Active"
    assert said.body["status"]["conditions"] == [CONDITION]
    assert said.body["spec"]["slots"] == 1
    assert said.body["metadata"]["generation"] == 1
    assert "labels" not in said.body["metadata"]
    main = await api.patch(f"{path}/one", {"status": {"phase": "Failed"}})
    assert main.body["status"]["phase"] == "Active"


async def test_a_status_is_written_only_for_what_was_seen(api: Api, path: str) -> None:
    made = await create(api, path)
    await api.patch(f"{path}/one", {"spec": {"slots": 2}})
    late = {"metadata": {"resourceVersion": made.revision}, "status": {"phase": "Active"}}
    assert (await api.patch(f"{path}/one/status", late)).outline == (409, "Conflict")


async def test_a_uid_is_no_precondition_of_a_status(api: Api, path: str) -> None:
    """So that a resourceVersion has to be given."""
    made = await create(api, path)
    other = {"metadata": {"uid": "another"}, "status": {"phase": "Active"}}
    answer = await api.patch(f"{path}/one/status", other)
    assert answer.status == 200
    assert answer.body["metadata"]["uid"] == made.body["metadata"]["uid"]


async def test_a_deletion_takes_preconditions(api: Api, path: str) -> None:
    made = await create(api, path)
    await api.patch(f"{path}/one", {"spec": {"slots": 2}})
    uid, version = made.body["metadata"]["uid"], made.revision
    late = {"preconditions": {"uid": uid, "resourceVersion": version}}
    assert (await api.delete(f"{path}/one", late)).outline == (409, "Conflict")
    now = (await api.get(f"{path}/one")).revision
    gone = await api.delete(f"{path}/one", {"preconditions": {"uid": uid, "resourceVersion": now}})
    assert gone.body["status"] == "Success"
    assert (await api.get(f"{path}/one")).status == 404


async def test_they_are_patched_by_merge_and_json_patches_only(api: Api, path: str) -> None:
    await create(api, path)
    patch = [{"op": "replace", "path": "/spec/slots", "value": 3}]
    assert (await api.patch(f"{path}/one", patch, JSON_PATCH)).body["spec"]["slots"] == 3
    answer = await api.patch(f"{path}/one", {"spec": {"slots": 2}}, STRATEGIC_PATCH)
    assert answer.outline == (415, "UnsupportedMediaType")


async def test_all_namespaces_are_listed_and_watched(api: Api, path: str) -> None:
    before = await api.get(f"{GROUP}/reservations", limit="500")
    async with api.watch(f"{GROUP}/reservations", resourceVersion=before.revision) as watching:
        made = await create(api, path)
        kind, seen = await _next_here(watching, api)
        assert (kind, seen["metadata"]["uid"]) == ("ADDED", made.body["metadata"]["uid"])
        await api.delete(f"{path}/one")
        kind, seen = await _next_here(watching, api)
        assert (kind, seen["metadata"]["name"]) == ("DELETED", "one")
    listed = (await api.get(f"{GROUP}/reservations", limit="500")).body["items"]
    assert api.namespace not in {item["metadata"]["namespace"] for item in listed}


async def _next_here(watching: Watching, api: Api) -> tuple[str, Json]:
    """Return the next event of this test's namespace: a cluster may have other Reservations."""
    while True:
        kind, seen = await watching.next()
        if seen["metadata"]["namespace"] == api.namespace:
            return kind, seen


async def test_kubectl_gets_the_columns(api: Api, path: str) -> None:
    await create(api, path)
    status = {"phase": "Active", "claimed": 1, "expiresAt": "2030-01-01T00:00:00Z"}
    since = {"lastTransitionTime": "2029-01-01T00:00:00Z", "message": "it has its room"}
    backed = {"type": "Backed", "status": "True", "reason": "RoomHeld", **since}
    summary = {
        "nodes": "worker-1",
        "resources": "cpu 2",
        "owners": "pod/a",
        "claimed": "1/1",
    }
    told = {"summary": summary, "conditions": [backed]}
    await api.patch(f"{path}/one/status", {"status": status | told})
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = (await api.send("GET", path, accept=accept)).body
    shown = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert shown == ["Name", "Phase", "Reason", "Nodes", "Claimed", "Expires", "Age"]
    row = table["rows"][0]["cells"][:8]
    seen = ["worker-1", "cpu 2", "pod/a", "1/1", "2030-01-01T00:00:00Z"]
    assert row == ["one", "Active", "RoomHeld", *seen]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"owners": []}, {("FieldValueInvalid", "spec.owners")}),
        ({"owners": None}, {("FieldValueRequired", "spec.owners")}),
        ({"slots": 0, "node": ""}, {("FieldValueInvalid", f) for f in ("spec.slots", "spec.node")}),
        ({"slots": "two"}, {("FieldValueTypeInvalid", "spec.slots")}),
        ({"slots": True}, {("FieldValueTypeInvalid", "spec.slots")}),
        ({"policy": "require"}, {("FieldValueNotSupported", "spec.policy")}),
        ({"resources": {}}, {("FieldValueInvalid", "spec.resources")}),
        ({"resources": {"cpu": "x"}}, {("FieldValueInvalid", "spec.resources.cpu")}),
        ({"resources": {"cpu": -1}}, {("FieldValueInvalid", "spec.resources.cpu")}),
        ({"resources": {"cpu": 1.5}}, {("FieldValueTypeInvalid", "spec.resources.cpu")}),
        ({"expiresAt": "tomorrow"}, {("FieldValueTypeInvalid", "spec.expiresAt")}),
        ({"node": "n" * 254}, {("FieldValueTooLong", "spec.node")}),
        (
            {"owners": [{"selector": {"matchExpressions": [{"key": "a"}]}}]},
            {("FieldValueRequired", "spec.owners[0].selector.matchExpressions[0].operator")},
        ),
    ],
)
async def test_the_schema_refuses(
    api: Api, path: str, change: Json, expected: set[tuple[str, str]]
) -> None:
    """Rules in CEL are in tests/e2e/test_crd_validation.py: the embedded server has none."""
    spec = {key: value for key, value in (SPEC | change).items() if value is not None}
    refused = await create(api, path, spec=spec)
    assert refused.outline == (422, "Invalid")
    causes = {(c["reason"], c["field"]) for c in refused.body["details"]["causes"]}
    assert expected <= causes


async def test_unknown_fields_are_dropped_or_refused(api: Api, path: str) -> None:
    body: Json = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
    spec = SPEC | {"surplus": 1, "owners": [{"pod": {"name": "a", "more": 1}}]}
    body |= {"metadata": {"name": "one"}, "spec": spec}
    strict = await api.post(path, body, fieldValidation="Strict")
    assert strict.outline == (400, "BadRequest")
    assert 'unknown field "spec.owners[0].pod.more"' in strict.body["message"]
    assert 'unknown field "spec.surplus"' in strict.body["message"]
    made = await api.post(path, body)
    assert made.body["spec"] == SPEC | {"slots": 1, "policy": "Prefer"}


async def test_a_reservation_is_applied_and_its_default_stays(api: Api, path: str) -> None:
    config: Json = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
    config |= {"metadata": {"name": "one"}, "spec": SPEC}
    made = await api.apply(f"{path}/one", config, "git")
    assert made.status == 201
    assert made.body["spec"]["slots"] == 1
    assert made.body["metadata"]["generation"] == 1
    await api.patch(f"{path}/one/status", {"status": {"phase": "Active"}})
    again = await api.apply(f"{path}/one", config, "git")
    assert (again.status, again.body["status"]["phase"]) == (200, "Active")
    assert again.body["metadata"]["generation"] == 1
    grown = await api.apply(f"{path}/one", config | {"spec": SPEC | {"slots": 2}}, "git")
    assert (grown.body["spec"]["slots"], grown.body["metadata"]["generation"]) == (2, 2)


async def test_the_fields_are_explained(api: Api, path: str) -> None:
    assert path
    index = (await api.get("/openapi/v3")).body["paths"]
    document = (await api.get(index[GROUP[1:]]["serverRelativeURL"])).body
    (schema,) = (
        schema
        for schema in document["components"]["schemas"].values()
        if {"group": "reserver.io", "kind": "Reservation", "version": "v1alpha1"}
        in schema.get("x-kubernetes-group-version-kind", ())
    )
    spec = schema["properties"]["spec"]
    assert spec["description"] == "The amount to hold, the node, the owners, and the time."
    assert spec["properties"]["slots"]["type"] == "integer"
    (item,) = (path for path in document["paths"] if path.endswith("/reservations/{name}"))
    media = document["paths"][item]["patch"]["requestBody"]["content"]
    assert APPLY_PATCH in media
    assert STRATEGIC_PATCH not in media


async def test_claims_beyond_those_with_uids_are_kept_as_they_are_written(
    api: Api, path: str
) -> None:
    """The API server would silently drop fields that the schema lacks."""
    await create(api, path)
    more = [{"node": "worker-1", "pods": "abcdefgh" * 99_000}, {"node": "", "pods": "-_345678"}]
    status = {"phase": "Active", "claims": [], "placements": [], "conditions": []}
    await api.patch(f"{path}/one/status", {"status": {**status, "moreClaims": more}})
    assert (await api.get(f"{path}/one")).body["status"]["moreClaims"] == more
