"""Objects that are deleted because their CRD, or their namespace, is."""

import asyncio
from typing import Any

import pytest

from reserver.k8s.watch.collection import CRDS, Enclosing
from reserver.k8s.watch.reflector import Reflector
from tests.unit.k8s.fakes import PatientClient, refused
from tests.unit.k8s.watch.scripts import PATH, Played, Recorded, event, page, run


def crds(version: str, *, terminating: bool = False) -> dict[str, Any]:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {}
    metadata = {"name": "things", "resourceVersion": "5", **deleted}
    return {"metadata": {"resourceVersion": version}, "items": [{"metadata": metadata}]}


async def enclosed(*script: Any, may_be_missing: bool = False) -> Played:
    client, view = PatientClient(*script), Recorded()
    reflector = Reflector(client, PATH, view)
    reflector.enclosing = (Enclosing(client, CRDS, "things", may_be_missing=may_be_missing),)
    await run(reflector, client)
    return Played(client, view, reflector)


KEPT, GOING, GONE = crds("10"), crds("10", terminating=True), page()
DELETED = event("DELETED", "a", "11")


@pytest.mark.usefixtures("pauses")
async def test_who_deletes_an_object_releases_it() -> None:
    played = await enclosed(page("a"), KEPT, [DELETED, asyncio.Event()], crds("11"))
    assert played.told == ["listed a", "end", "deleted a"]
    asked = played.client.requests[1]
    assert (asked.path, asked.params) == (CRDS, {"fieldSelector": "metadata.name=things"})


@pytest.mark.usefixtures("pauses")
async def test_one_answer_is_for_all_that_was_deleted_before() -> None:
    more = [event("DELETED", name, version) for name, version in (("b", "12"), ("c", "20"))]
    played = await enclosed(
        page("a", "b", "c"), KEPT, [DELETED, *more, asyncio.Event()], crds("20")
    )
    assert played.told[-3:] == ["deleted a", "deleted b", "deleted c"]
    assert played.calls.count("get") == 3


@pytest.mark.parametrize("found", [GOING, GONE, refused(403), refused(500)])
@pytest.mark.usefixtures("pauses")
async def test_what_is_deleted_with_it_stays_as_it_was(found: Any) -> None:
    played = await enclosed(page("a"), KEPT, [DELETED], found, [DELETED], found, [DELETED], found)
    assert played.told == ["listed a", "end"]
    assert not played.reflector.current.is_set()
    assert played.calls[-1] == "watch 10"


@pytest.mark.parametrize("found", [GOING, GONE])
@pytest.mark.usefixtures("pauses")
async def test_so_does_what_a_list_does_not_show(found: Any) -> None:
    empty = page(version="30")
    played = await enclosed(
        page("a"), KEPT, [DELETED], found, refused(404), empty, found, empty, found
    )
    assert played.told == ["listed a", "end"]
    assert not played.reflector.current.is_set()
    assert "docs/backup-and-restore.md" in str(played.reflector._complaint)


@pytest.mark.usefixtures("pauses")
async def test_once_it_exists_again_what_is_there_counts() -> None:
    played = await enclosed(
        page("a"), KEPT, [DELETED], GONE, refused(404), page("b", version="30"), crds("30")
    )
    assert played.told == ["listed a", "end", "listed b", "end"]


@pytest.mark.usefixtures("pauses")
async def test_an_api_server_without_crds_deletes_none() -> None:
    played = await enclosed(page("a"), refused(404), [DELETED], refused(404))
    assert played.told == ["listed a", "end", "deleted a"]


@pytest.mark.usefixtures("pauses")
async def test_a_namespace_that_was_never_there_takes_nothing_with_it() -> None:
    played = await enclosed(page("a"), GONE, [DELETED], GONE, may_be_missing=True)
    assert played.told == ["listed a", "end", "deleted a"]


@pytest.mark.parametrize("found", [GOING, GONE])
@pytest.mark.usefixtures("pauses")
async def test_one_that_was_there_does(found: Any) -> None:
    script = (page("a"), KEPT, [DELETED], found, [DELETED], found)
    played = await enclosed(*script, may_be_missing=True)
    assert played.told == ["listed a", "end"]
