"""An API server that is at an earlier moment than it was: etcd was restored from a backup."""

import asyncio
import json
import os
from itertools import count
from typing import Any, NoReturn

import msgspec
import pytest

from reserver.base.pacer import outcome
from reserver.errors import ApiError, WentBack
from reserver.extender.cluster_watches import PODS
from reserver.k8s.watch.back_in_time import watched
from reserver.k8s.watch.lag import RELIST_AFTER_S
from reserver.k8s.watch.reflector import Reflector
from tests.unit.k8s.fakes import NO_ANSWER, PatientClient, refused
from tests.unit.k8s.watch.scripts import PATH, Recorded, event, page, play
from tests.unit.whole import OBJECTS, STORES, Whole, spec

SYSTEM = "reserver-system"
GONE = refused(410)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param((page(), [b"", asyncio.Event()], page(version="9")), id="once it is watched"),
        pytest.param(
            (page(), [event("BOOKMARK", "", "20")], [b"", asyncio.Event()], page(version="19")),
            id="a watch resumes after a bookmark",
        ),
        pytest.param(
            (page(), NO_ANSWER, NO_ANSWER, [b"", asyncio.Event()], page(version="3")),
            id="it was away meanwhile",
        ),
        pytest.param((page(), [GONE], page(version="9")), id="a list after 410"),
        pytest.param(
            (page(), [GONE], page("a", version="9", more="t"), page("b", version="9")),
            id="pages of a list after 410",
        ),
        pytest.param((page(), [event("MODIFIED", "a", "9")]), id="a change"),
        pytest.param((page(), [event("DELETED", "a", "9")]), id="a deletion"),
        pytest.param((page(), [event("BOOKMARK", "", "9")]), id="a bookmark"),
    ],
)
@pytest.mark.usefixtures("pauses")
async def test_it_is_noticed(script: tuple[Any, ...]) -> None:
    with pytest.raises(WentBack, match=r"^it is at resourceVersion \d+ and was at (10|20)$"):
        await play(*script)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param((page(), [b"", asyncio.Event()], page()), id="nothing happens anywhere"),
        pytest.param((page(), [GONE], page("a")), id="the same list after 410"),
        pytest.param((page(), [GONE], page("a", version="11")), id="a later list after 410"),
        pytest.param((page(), refused(504), [b""], page()), id="Too large resource version"),
        pytest.param((page(), [b""], NO_ANSWER, page()), id="nobody says how far it is"),
    ],
)
@pytest.mark.usefixtures("pauses")
async def test_an_api_server_that_is_behind_another_one_is_none(script: tuple[Any, ...]) -> None:
    await play(*script)


@pytest.mark.parametrize(("away_s", "lists"), [(RELIST_AFTER_S - 1, 1), (RELIST_AFTER_S + 1, 2)])
@pytest.mark.usefixtures("pauses")
async def test_after_a_long_time_away_all_is_listed_anew(away_s: float, lists: int) -> None:
    moments = iter([0.0] * 5)
    now = [0.0]

    def timer() -> float:
        return next(moments, now[0])

    def away() -> ApiError:
        now[0] = away_s
        return NO_ANSWER

    script = (page(), NO_ANSWER, away, [b"", asyncio.Event()], page(version="30"))
    played = await play(*script, timer=timer)
    assert played.reflector.lists == lists


@pytest.fixture
async def whole() -> Whole:
    async with asyncio.TaskGroup() as tasks:
        return Whole(tasks)


def shown(path: str, revision: int) -> msgspec.Raw:
    """Return a pod, a store or a Reservation, as the API server shows it."""
    namespace = "shop" if path == PODS else SYSTEM
    metadata = {"name": "a", "namespace": namespace, "uid": "u", "resourceVersion": str(revision)}
    said: dict[str, Any] = {"metadata": metadata}
    if path == PODS:
        said["spec"] = {"nodeName": "worker-1", "containers": []}
    elif path == STORES:
        said["data"] = {"k": json.dumps(spec(1, node="worker-1"))}
    else:
        said["spec"] = spec(1, node="worker-1")
    return msgspec.Raw(json.dumps(said).encode())


@pytest.mark.parametrize("path", [PODS, STORES, OBJECTS])
@pytest.mark.parametrize(
    ("was", "seen", "now", "is_back"),
    [
        pytest.param(50, 60, 40, True, id="it is as it was before"),
        pytest.param(50, 60, 50, False, id="it is the same"),
        pytest.param(50, 60, 70, False, id="it has changed since"),
        pytest.param(65, 60, 64, False, id="an answer to our own write came before the list"),
        pytest.param(50, 0, 40, False, id="nothing was seen to its end"),
    ],
)
async def test_what_a_list_shows_is_compared_with_what_was_seen(
    whole: Whole, path: str, was: int, seen: int, now: int, *, is_back: bool
) -> None:
    """A restored etcd may continue at a much higher revision: only the objects show the loss."""
    view = whole.views[path]
    outcome(view.changed(shown(path, was)))
    view.list_began(seen)
    if is_back:
        with pytest.raises(WentBack, match="a is at resourceVersion 40 and was at resourceVersion"):
            outcome(view.listed(shown(path, now)))
    else:
        outcome(view.listed(shown(path, now)))


@pytest.mark.parametrize("path", [STORES, OBJECTS])
@pytest.mark.parametrize(("now", "is_back"), [(40, True), (60, True), (61, False)])
async def test_an_entry_that_was_gone_does_not_come_back(
    whole: Whole, path: str, now: int, *, is_back: bool
) -> None:
    view = whole.views[path]
    outcome(view.changed(shown(path, 40)))
    outcome(view.deleted(shown(path, 60)))
    view.list_began(60)
    if is_back:
        with pytest.raises(WentBack, match=f"a is at resourceVersion {now} and was gone"):
            outcome(view.listed(shown(path, now)))
    else:
        outcome(view.listed(shown(path, now)))


async def test_what_could_not_be_read_proves_nothing(whole: Whole) -> None:
    """A tenant may write such objects: they must not end the process."""
    view = whole.views[OBJECTS]
    broken = msgspec.Raw(bytes(shown(OBJECTS, 40)).replace(b'"a"', b'"a", "labels": 7'))
    outcome(view.changed(broken))
    assert view.unreadable == 1
    for revision in (40, 40):
        view.list_began(60)
        outcome(view.listed(broken))
        view.list_began(60)
        outcome(view.listed(shown(OBJECTS, revision)))


@pytest.mark.usefixtures("pauses")
async def test_a_collection_that_comes_back_is_compared_with_nothing() -> None:
    """While the API server starts, it may answer 404 for a collection that it has."""
    view, now = Recorded(), count(0, 60)
    client = PatientClient(page(), refused(404), refused(404), page("a"))
    timer = lambda: float(next(now))  # noqa: E731 - time passes
    reflector = Reflector(client, PATH, view, is_optional=True, timer=timer)
    task = asyncio.create_task(reflector.run())
    await client.played.wait()
    task.cancel()
    assert view.told[-2:] == ["listed a", "end"]
    assert view.seen_up_to == 0


async def test_the_process_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []

    def end(status: int) -> NoReturn:
        ended.append(status)
        raise SystemError

    monkeypatch.setattr(os, "_exit", end)
    client = PatientClient(page(), [event("MODIFIED", "a", "9")])
    with pytest.raises(SystemError):
        await watched(Reflector(client, PATH, Recorded()))
    assert ended == [1]
