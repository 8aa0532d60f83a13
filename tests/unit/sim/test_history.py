"""The bounded history: available and expired revisions."""

import asyncio
import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver_demo.apiserver.listing import list_page, parse_options
from reserver_demo.apiserver.resources import CONFIG_MAP_RESOURCE
from reserver_demo.apiserver.status import Json, StatusError
from reserver_demo.apiserver.store import Store
from reserver_demo.apiserver.watch import BOOKMARK_INTERVAL, Watch
from tests.unit.sim.clocks import ManualClock

PLURAL = "configmaps"


def _content(name: str) -> Json:
    return {"metadata": {"name": name, "namespace": "default"}}


def _store(writes: int, limit: int = 5) -> Store:
    store = Store(history_limit=limit)
    store.collection(PLURAL)
    for number in range(writes):
        store.put(PLURAL, _content(f"cm-{number % 7}"))
    return store


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_the_past_can_be_rebuilt(steps: list[tuple[str, bool]]) -> None:
    store = Store(history_limit=100)
    collection = store.collection(PLURAL)
    past = {store.revision: collection.items()}
    for name, remove in steps:
        present = {item.key.name for item in collection.items()}
        if remove and name in present:
            store.remove(PLURAL, _content(name))
        elif not remove:
            store.put(PLURAL, _content(name))
        past[store.revision] = collection.items()
    for revision, items in past.items():
        assert collection.items_at(revision) == items


def test_only_so_much_is_remembered() -> None:
    store = _store(writes=30, limit=5)
    collection = store.collection(PLURAL)
    assert 5 <= len(collection.changes_after(collection.start)) < 10
    with pytest.raises(StatusError) as caught:
        collection.changes_after(collection.start - 1)
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"] == (
        f"too old resource version: {collection.start - 1} ({collection.start})"
    )


def test_an_expired_page_token_comes_with_one_that_works() -> None:
    store = _store(writes=6)
    options = parse_options({"limit": "2"}, CONFIG_MAP_RESOURCE, "")
    first = list_page(store, CONFIG_MAP_RESOURCE, options)
    for _ in range(30):
        store.put(PLURAL, _content("cm-9"))
    options = parse_options({"continue": first.continuation}, CONFIG_MAP_RESOURCE, "")
    with pytest.raises(StatusError) as caught:
        list_page(store, CONFIG_MAP_RESOURCE, options)
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (410, "Expired")
    token = status["metadata"]["continue"]
    options = parse_options({"continue": token}, CONFIG_MAP_RESOURCE, "")
    rest = list_page(store, CONFIG_MAP_RESOURCE, options)
    names = [item.key.name for item in rest.items]
    assert names == ["cm-2", "cm-3", "cm-4", "cm-5", "cm-9"]


def test_an_expired_list_of_the_past() -> None:
    store = _store(writes=30)
    query = {"resourceVersion": "3", "resourceVersionMatch": "Exact"}
    with pytest.raises(StatusError) as caught:
        list_page(store, CONFIG_MAP_RESOURCE, parse_options(query, CONFIG_MAP_RESOURCE, ""))
    assert caught.value.status()["message"] == (
        "The resourceVersion for the provided list is too old."
    )


def test_page_tokens_are_those_of_kubernetes() -> None:
    store = _store(writes=6)
    options = parse_options({"limit": "2"}, CONFIG_MAP_RESOURCE, "")
    token = list_page(store, CONFIG_MAP_RESOURCE, options).continuation
    fields = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert fields == {"v": "meta.k8s.io/v1", "rv": store.revision, "start": "default/cm-1\0"}


def _watch(store: Store, clock: ManualClock, **query: str) -> Watch:
    options = parse_options({"watch": "1", **query}, CONFIG_MAP_RESOURCE, "")
    return Watch(store, CONFIG_MAP_RESOURCE, options, clock)


async def test_an_expired_watch_ends_with_an_error() -> None:
    watch = _watch(_store(writes=30), ManualClock(), resourceVersion="3")
    batches = [batch async for batch in watch.batches()]
    ((event,),) = batches
    assert event.kind == "ERROR"
    assert event.other is not None
    assert event.other["code"] == 410


async def test_bookmarks_come_every_minute() -> None:
    store, clock = _store(writes=3), ManualClock()
    query = {"resourceVersion": str(store.revision), "allowWatchBookmarks": "true"}
    batches = _watch(store, clock, **query).batches()
    store.put("pods", _content("something-else"))
    for _ in range(3):
        coming = asyncio.ensure_future(anext(batches))
        await clock.asleep(BOOKMARK_INTERVAL)
        clock.advance(BOOKMARK_INTERVAL)
        (bookmark,) = await coming
        assert bookmark.kind == "BOOKMARK"
        assert bookmark.other is not None
        assert bookmark.other["metadata"]["resourceVersion"] == str(store.revision)


async def test_a_quiet_watch_does_not_expire() -> None:
    store, clock = _store(writes=3), ManualClock()
    batches = _watch(store, clock, resourceVersion=str(store.revision)).batches()
    coming = asyncio.ensure_future(anext(batches))
    await clock.asleep(1800)
    for _ in range(4):
        store.put(PLURAL, _content("other"))
    assert len(await coming) == 4


async def test_a_watch_ends_when_the_server_stops() -> None:
    store, clock = _store(writes=3), ManualClock()
    batches = _watch(store, clock, resourceVersion=str(store.revision)).batches()
    ending = asyncio.ensure_future(anext(batches, None))
    await clock.asleep(1800)
    store.close()
    assert await ending is None
