"""Requests that are not understood, discovery, and the types of the API."""

import json

import pytest

from tests.contract.api import JSON, Api
from tests.contract.schema_document import SHIPPED, fetch


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b'{"metadata": 7}'])
async def test_malformed_bodies_are_bad_requests(api: Api, body: bytes) -> None:
    answer = await api.send("POST", api.path("configmaps"), body)
    assert answer.outline == (400, "BadRequest")
    assert (answer.body["kind"], answer.body["code"]) == ("Status", 400)


async def test_a_body_has_a_limit(api: Api) -> None:
    data = {"a": "x" * (3 * 1024 * 1024)}
    answer = await api.config_map("one", data)
    assert answer.outline == (413, "RequestEntityTooLarge")
    assert answer.body["message"] == "Request entity too large: limit is 3145728"


async def test_only_known_formats_are_read_and_written(api: Api) -> None:
    answer = await api.send("POST", api.path("configmaps"), b"x", media="text/plain")
    assert answer.outline == (415, "UnsupportedMediaType")
    answer = await api.send("GET", api.path("configmaps"), accept="text/html")
    assert answer.outline == (406, "NotAcceptable")
    answer = await api.send("GET", api.path("configmaps"), accept="text/html, */*")
    assert answer.status == 200


async def test_json_is_assumed(api: Api) -> None:
    body = b'{"metadata": {"name": "one"}}'
    answer = await api.send("POST", api.path("configmaps"), body, media=None)
    assert answer.status == 201
    assert answer.headers["Content-Type"] == JSON


async def test_unknown_fields_vanish_with_a_warning(api: Api) -> None:
    body = {"metadata": {"name": "one"}, "surplus": 1}
    made = await api.post(api.path("configmaps"), body, dryRun="All")
    assert "surplus" not in made.body
    assert made.headers["Warning"] == '299 - "unknown field \\"surplus\\""'
    query = {"dryRun": "All", "fieldValidation": "Ignore"}
    quiet = await api.post(api.path("configmaps"), body, **query)
    assert "Warning" not in quiet.headers


async def test_unknown_fields_fail_strictly(api: Api) -> None:
    body = {"metadata": {"name": "one", "more": 1}, "surplus": 1}
    answer = await api.post(api.path("configmaps"), body, fieldValidation="Strict")
    assert answer.outline == (400, "BadRequest")
    assert answer.body["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "metadata.more", unknown field "surplus"'
    )


async def test_unknown_resources_are_not_found(api: Api) -> None:
    for path in ("/api/v1/unknowns", api.path("unknowns"), "/apis/none.io/v1/things"):
        answer = await api.get(path)
        assert answer.status == 404


async def test_verbs_that_a_resource_lacks_are_not_allowed(api: Api) -> None:
    await api.config_map("one")
    answer = await api.send("POST", api.path("configmaps", "one"), {})
    assert answer.outline == (405, "MethodNotAllowed")


async def test_the_server_tells_that_it_is_well(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        answer = await api.get(path)
        assert (answer.status, answer.body) == (200, {"text": "ok"})
    version = (await api.get("/version")).body
    assert version["major"] == "1"
    assert version["gitVersion"].startswith("v1.")


async def test_discovery_lists_what_is_served(api: Api) -> None:
    assert (await api.get("/api")).body["versions"] == ["v1"]
    groups = (await api.get("/apis")).body["groups"]
    assert "scheduling.k8s.io" in [group["name"] for group in groups]
    for path, expected in (
        ("/api/v1", {"pods", "pods/status", "pods/binding", "pods/eviction", "nodes", "events"}),
        ("/apis/policy/v1", {"poddisruptionbudgets", "poddisruptionbudgets/status"}),
        ("/apis/scheduling.k8s.io/v1", {"priorityclasses"}),
    ):
        listed = (await api.get(path)).body
        assert listed["kind"] == "APIResourceList"
        entries = {entry["name"]: entry for entry in listed["resources"]}
        assert expected <= set(entries)
    core = {e["name"]: e for e in (await api.get("/api/v1")).body["resources"]}
    assert core["pods"]["namespaced"] is True
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods"]["kind"] == "Pod"
    assert core["pods/eviction"]["kind"] == "Eviction"
    assert core["pods/eviction"]["group"] == "policy"
    assert core["nodes"]["namespaced"] is False
    wanted = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert set(core["configmaps"]["verbs"]) == wanted


async def test_the_shipped_types_are_the_servers_own(api: Api) -> None:
    assert await fetch(api) == json.loads(SHIPPED.read_text())
