"""Listing: selectors, pages and revisions."""

import base64
import json

import pytest

from tests.contract.api import Api


async def _five(api: Api) -> None:
    labels = [
        {"app": "a", "tier": "front"},
        {"app": "a", "tier": "back"},
        {"app": "b", "size": "5"},
        {"app": "c"},
        {},
    ]
    for number, own in enumerate(labels):
        await api.config_map(f"cm-{number}", labels={**own, "own": "yes"})


async def test_a_list_is_sorted_and_its_items_have_no_kind(api: Api) -> None:
    await api.config_map("b", labels={"own": "yes"})
    await api.config_map("a", labels={"own": "yes"})
    found = await api.get(api.path("configmaps"), labelSelector="own")
    assert found.body["kind"] == "ConfigMapList"
    assert found.body["apiVersion"] == "v1"
    assert found.names == ["a", "b"]
    assert all("kind" not in item and "apiVersion" not in item for item in found.body["items"])


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=a", [0, 1]),
        ("app==a", [0, 1]),
        ("app!=a", [2, 3, 4]),
        ("app in (a,b)", [0, 1, 2]),
        ("app in (a, b),tier", [0, 1]),
        ("app notin (a,b)", [3, 4]),
        ("tier", [0, 1]),
        ("!tier", [2, 3, 4]),
        ("app=a,tier!=front", [1]),
        ("size>4", [2]),
        ("size<5", []),
        ("app=", []),
    ],
)
async def test_lists_select_on_labels(api: Api, selector: str, names: list[int]) -> None:
    await _five(api)
    found = await api.get(api.path("configmaps"), labelSelector=f"own,{selector}")
    assert found.names == [f"cm-{number}" for number in names]


async def test_lists_select_on_fields(api: Api) -> None:
    await api.pod("one")
    await api.pod("two")
    await api.bind("two", api.nowhere)
    path = api.path("pods")
    assert (await api.get(path, fieldSelector="metadata.name=one")).names == ["one"]
    assert (await api.get(path, fieldSelector="spec.nodeName=")).names == ["one"]
    assert (await api.get(path, fieldSelector="spec.nodeName!=")).names == ["two"]
    assert (await api.get(path, fieldSelector=f"spec.nodeName={api.nowhere}")).names == ["two"]
    assert (await api.get(path, fieldSelector="spec.schedulerName=nobody")).names == ["one", "two"]
    both = "status.phase=Pending,metadata.name!=one"
    assert (await api.get(path, fieldSelector=both)).names == ["two"]
    everywhere = f"metadata.namespace={api.namespace}"
    assert (await api.get("/api/v1/pods", fieldSelector=everywhere)).names == ["one", "two"]


@pytest.mark.parametrize(
    ("plural", "query"),
    [
        ("pods", {"fieldSelector": "spec.containers=x"}),
        ("pods", {"fieldSelector": "nonsense"}),
        ("configmaps", {"fieldSelector": "data.a=x"}),
        ("pods", {"labelSelector": "a in ("}),
        ("pods", {"labelSelector": "a=b=c"}),
        ("pods", {"labelSelector": "a>x"}),
        ("pods", {"limit": "many"}),
    ],
)
async def test_what_cannot_be_read_is_a_bad_request(
    api: Api, plural: str, query: dict[str, str]
) -> None:
    answer = await api.get(api.path(plural), **query)
    assert answer.outline == (400, "BadRequest")


async def test_pages_together_are_the_list(api: Api) -> None:
    await _five(api)
    path = api.path("configmaps")
    first = await api.get(path, limit="2")
    whole = await api.get(path)
    assert first.names == whole.names[:2]
    assert first.body["metadata"]["remainingItemCount"] == len(whole.names) - 2
    await api.config_map("cm-9")  # after the list began: not in it
    token = first.body["metadata"]["continue"]
    names = first.names
    while token:
        page = await api.get(path, limit="2", **{"continue": token})
        assert page.revision == first.revision
        names += page.names
        token = page.body["metadata"].get("continue", "")
    assert names == whole.names
    assert "remainingItemCount" not in page.body["metadata"]


async def test_a_page_of_a_selection_cannot_count_the_rest(api: Api) -> None:
    await _five(api)
    page = await api.get(api.path("configmaps"), labelSelector="own", limit="2")
    assert page.body["metadata"]["continue"]
    assert "remainingItemCount" not in page.body["metadata"]


async def test_a_broken_page_token_is_a_bad_request(api: Api) -> None:
    answer = await api.get(api.path("configmaps"), **{"continue": "nonsense"})
    assert answer.outline == (400, "BadRequest")


async def test_a_page_token_without_revision_takes_what_is_there(api: Api) -> None:
    await _five(api)
    path = api.path("configmaps")
    first = await api.get(path, limit="2")
    token = first.body["metadata"]["continue"]
    fields = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    fields["rv"] = -1
    await api.delete(api.path("configmaps", "cm-4"))
    present = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    rest = await api.get(path, limit="100", **{"continue": present})
    whole = await api.get(path)
    assert first.names + rest.names == whole.names


async def test_a_list_can_be_of_the_past(api: Api) -> None:
    first = await api.config_map("past-1")
    await api.config_map("past-2")
    path = api.path("configmaps")
    query = {"resourceVersion": first.revision, "labelSelector": "!none"}
    exact = await api.get(path, resourceVersionMatch="Exact", **query)
    assert "past-1" in exact.names
    assert "past-2" not in exact.names
    assert exact.revision == first.revision
    fresh = await api.get(path, resourceVersionMatch="NotOlderThan", **query)
    assert "past-2" in fresh.names


async def test_a_list_of_the_future_times_out(api: Api) -> None:
    query = {"resourceVersion": "999999999", "resourceVersionMatch": "NotOlderThan"}
    answer = await api.get(api.path("configmaps"), **query)
    assert answer.outline == (504, "Timeout")
    (cause,) = answer.body["details"]["causes"]
    assert cause["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Newest", "resourceVersion": "1"},
        {"sendInitialEvents": "true"},
        {"watch": "1", "sendInitialEvents": "true"},
        {"watch": "1", "resourceVersionMatch": "NotOlderThan"},
    ],
)
async def test_options_that_contradict_each_other_are_invalid(
    api: Api, query: dict[str, str]
) -> None:
    answer = await api.get(api.path("configmaps"), **query)
    assert answer.outline == (422, "Invalid")
