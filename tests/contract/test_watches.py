"""Watches: existing objects, changes, bookmarks and expired revisions."""

import asyncio

from tests.contract.api import Api, Json

OWN = {"labelSelector": "own"}
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def _brief(event: tuple[str, Json]) -> tuple[str, str]:
    kind, seen = event
    return kind, seen["metadata"]["name"]


async def test_a_watch_from_a_revision_shows_what_came_after_it(api: Api) -> None:
    made = await api.config_map("one", labels={"own": ""})
    path = api.path("configmaps")
    async with api.watch(path, resourceVersion=made.revision, **OWN) as watching:
        changed = await api.patch(api.path("configmaps", "one"), {"data": {"b": "2"}})
        kind, seen = await watching.next()
        assert kind == "MODIFIED"
        assert seen == changed.body
        assert (seen["kind"], seen["apiVersion"]) == ("ConfigMap", "v1")
        await api.config_map("two", labels={"own": ""})
        assert _brief(await watching.next()) == ("ADDED", "two")
        await api.delete(api.path("configmaps", "two"))
        kind, gone = await watching.next()
        assert (kind, gone["metadata"]["name"]) == ("DELETED", "two")
        assert int(gone["metadata"]["resourceVersion"]) > int(changed.revision)


async def test_a_watch_from_nowhere_begins_with_what_is_there(api: Api) -> None:
    await api.config_map("b", labels={"own": ""})
    await api.config_map("a", labels={"own": ""})
    for revision in ({}, {"resourceVersion": "0"}):
        async with api.watch(api.path("configmaps"), **revision, **OWN) as watching:
            seen = [_brief(await watching.next()) for _ in range(2)]
            assert sorted(seen) == [("ADDED", "a"), ("ADDED", "b")]


async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    await api.config_map("one", labels={"own": ""})
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    async with api.watch(api.path("configmaps"), **query, **OWN) as watching:
        assert _brief(await watching.next()) == ("ADDED", "one")
        kind, bookmark = await watching.next()
        assert kind == "BOOKMARK"
        assert bookmark["kind"] == "ConfigMap"
        assert bookmark["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
        listed = await api.get(api.path("configmaps"))
        assert int(bookmark["metadata"]["resourceVersion"]) <= int(listed.revision)
        await api.config_map("two", labels={"own": ""})
        event = await watching.next()
        while event[0] == "BOOKMARK":  # They come every minute, and as the API server likes.
            event = await watching.next()
        assert _brief(event) == ("ADDED", "two")


async def test_initial_events_of_the_future_fail_with_an_event(api: Api) -> None:
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": "999999999",
    }
    async with api.watch(api.path("configmaps"), **query) as watching:
        ((kind, status),) = await watching.rest()
    assert (kind, status["code"], status["reason"]) == ("ERROR", 504, "Timeout")


async def test_initial_events_can_be_declined(api: Api) -> None:
    made = await api.config_map("one", labels={"own": ""})
    query = {
        "sendInitialEvents": "false",
        "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": made.revision,
    }
    async with api.watch(api.path("configmaps"), **query, **OWN) as watching:
        await api.config_map("two", labels={"own": ""})
        assert _brief(await watching.next()) == ("ADDED", "two")


async def test_a_watch_from_nowhere_with_bookmarks_marks_the_end_of_the_initial_events(
    api: Api,
) -> None:
    await api.config_map("one", labels={"own": ""})
    await _until_any_version_shows(api, "one")
    query = {"resourceVersion": "0", "allowWatchBookmarks": "true", **OWN}
    async with api.watch(api.path("configmaps"), **query) as watching:
        assert _brief(await watching.next()) == ("ADDED", "one")
        kind, bookmark = await watching.next()
        assert kind == "BOOKMARK"
        assert INITIAL_EVENTS_END in bookmark["metadata"].get("annotations", {})


async def test_a_bookmark_comes_before_a_watch_ends(api: Api) -> None:
    made = await api.config_map("one", labels={"own": ""})
    query = {"resourceVersion": made.revision, "allowWatchBookmarks": "true", **OWN}
    events: list[tuple[str, Json]] = []
    while not events:  # A busy API server may miss the two seconds that it has for the bookmark.
        async with api.watch(api.path("configmaps"), timeoutSeconds="4", **query) as watching:
            events = await watching.rest()
    assert {kind for kind, _ in events} == {"BOOKMARK"}
    assert int(events[-1][1]["metadata"]["resourceVersion"]) >= int(made.revision)


async def test_a_watch_ends_in_time(api: Api) -> None:
    made = await api.config_map("one")
    loop = asyncio.get_running_loop()
    started = loop.time()
    query = {"resourceVersion": made.revision, "timeoutSeconds": "1"}
    async with api.watch(api.path("configmaps"), **query, **OWN) as watching:
        assert await watching.rest() == []
    assert 0.5 < loop.time() - started < 10


async def test_objects_enter_and_leave_a_selection(api: Api) -> None:
    made = await api.config_map("one", {"a": "1"})
    path = api.path("configmaps", "one")
    query = {"resourceVersion": made.revision, **OWN}
    async with api.watch(api.path("configmaps"), **query) as watching:
        entered = await api.patch(path, {"metadata": {"labels": {"own": ""}}})
        kind, seen = await watching.next()
        assert (kind, seen) == ("ADDED", entered.body)
        left = await api.patch(path, {"metadata": {"labels": None}, "data": {"a": "2"}})
        kind, seen = await watching.next()
        assert kind == "DELETED"
        assert seen["metadata"]["resourceVersion"] == left.revision
        # Its last state within the selection.
        assert seen["data"] == {"a": "1"}
        assert seen["metadata"]["labels"] == {"own": ""}


async def test_a_watch_of_pods_selects_on_the_node(api: Api) -> None:
    made = await api.pod("one")
    query = {"resourceVersion": made.revision, "fieldSelector": f"spec.nodeName={api.nowhere}"}
    async with api.watch(api.path("pods"), **query) as watching:
        await api.bind("one", api.nowhere)
        assert _brief(await watching.next()) == ("ADDED", "one")


async def test_a_watch_of_bound_pods_shows_a_binding_as_added(api: Api) -> None:
    made = await api.pod("one")
    query = {"resourceVersion": made.revision, "fieldSelector": "spec.nodeName!="}
    async with api.watch(api.path("pods"), **query) as watching:
        await api.patch(api.path("pods", "one"), {"metadata": {"labels": {"before": ""}}})
        await api.bind("one", api.nowhere)
        assert _brief(await watching.next()) == ("ADDED", "one")
        await api.patch(api.path("pods", "one"), {"metadata": {"labels": {"after": ""}}})
        assert _brief(await watching.next()) == ("MODIFIED", "one")


async def test_an_object_can_be_read_as_a_table(api: Api) -> None:
    made = await api.config_map("one", labels={"own": ""})
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    listed = await api.send("GET", api.path("configmaps", "one"), accept=table)
    assert listed.body["kind"] == "Table"
    assert listed.body["columnDefinitions"][0]["name"] == "Name"
    (row,) = listed.body["rows"]
    assert row["cells"][0] == "one"
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["uid"] == made.body["metadata"]["uid"]


async def _until_any_version_shows(api: Api, name: str) -> None:
    """Wait for the API server's cache, from which version 0 is answered: it may lag behind."""
    async with asyncio.timeout(30):
        shown: list[str] = []
        while name not in shown:
            shown = (await api.get(api.path("configmaps"), resourceVersion="0")).names
