"""A collection that cannot be read, and one that need not be there."""

from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.k8s.watch import reflector as reflector_module
from reserver.k8s.watch.reflector import Reflector
from tests.unit.k8s.fakes import NO_ANSWER, PatientClient, refused
from tests.unit.k8s.watch.scripts import PATH, Played, Recorded, event, page, play, run


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (refused(403), "rbac-reserver.yaml"),
        (refused(401), "docs/backup-and-restore.md#a-new-service-account"),
        (ApiError(404, "NotFound", "404 page not found"), "install its CRD"),
        (ApiError(404, "NotFound", 'pods "web-0" not found'), 'pods "web-0" not found'),
        (NO_ANSWER, "connection refused"),
        (refused(500), "500"),
    ],
)
@pytest.mark.usefixtures("pauses")
async def test_why_a_collection_cannot_be_read_is_told_until_it_can(
    error: Exception, says: str
) -> None:
    assert says in (await play(error)).reflector.obstacle()
    assert (await play(error, page())).reflector.obstacle() == ""


MISSING = refused(404, "NotFound")


async def optional(*script: Any) -> Played:
    client, view = PatientClient(*script), Recorded()
    reflector = Reflector(client, PATH, view, is_optional=True)
    await run(reflector, client)
    return Played(client, view, reflector)


@pytest.mark.usefixtures("pauses")
async def test_an_optional_collection_that_is_unknown_is_empty_and_no_obstacle() -> None:
    played = await optional(MISSING, MISSING)
    assert played.calls == ["get", "get", "get"]
    assert "listed" not in "".join(played.told)
    assert played.reflector.absent
    assert played.reflector.synced.is_set()
    assert played.reflector.current.is_set()
    assert played.reflector.obstacle() == ""


@pytest.mark.usefixtures("pauses")
async def test_an_optional_collection_is_read_once_it_is_known() -> None:
    played = await optional(MISSING, page("a"), [b"", event("ADDED", "b", "11")])
    assert played.told[-3:] == ["listed a", "end", "changed b"]
    assert not played.reflector.absent
    assert played.calls[:3] == ["get", "get", "watch 10"]


async def test_an_optional_collection_that_was_there_is_not_believed_gone_at_once() -> None:
    played = await optional(page("a"), MISSING, MISSING)
    assert played.told == ["listed a", "end"]
    assert not played.reflector.absent
    assert not played.reflector.current.is_set()


@pytest.mark.usefixtures("pauses")
async def test_an_optional_collection_that_stays_away_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector_module, "ABSENT_AFTER_S", 0.0)
    played = await optional(page("a"), MISSING, page("b"))
    assert played.told == ["listed a", "end", "end", "listed b", "end"]


async def test_a_collection_that_has_to_be_there_is_an_obstacle_while_it_is_unknown() -> None:
    played = await play(MISSING, MISSING)
    assert not played.reflector.synced.is_set()
    assert "is not listed yet" in played.reflector.obstacle()
