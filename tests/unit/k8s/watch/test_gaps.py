"""Events that a broken watch missed: the view is stale until all of them have arrived."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import pytest

from reserver.extender.cluster_watches import pod_view
from reserver.k8s.watch.reflector import Reflector
from reserver.scheduling.state import State
from tests.unit.k8s.fakes import NO_ANSWER, PatientClient, refused
from tests.unit.k8s.watch.scripts import PATH, Recorded, event, page, play, run


async def until(condition: Callable[[], bool]) -> None:
    """Run all tasks until a condition holds."""
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never happened")


@asynccontextmanager
async def watching(*script: Any) -> AsyncIterator[tuple[Reflector, PatientClient]]:
    """Run a reflector until a script is read and all tasks have settled."""
    client = PatientClient(*script)
    reflector = Reflector(client, PATH, Recorded())
    task = asyncio.create_task(reflector.run())
    await until(lambda: not client.script)
    for _ in range(20):
        await asyncio.sleep(0)
    yield reflector, client
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("lines", "found", "is_current"),
    [
        pytest.param([], (page(),), True, id="nothing has happened anywhere"),
        pytest.param(
            [], (page(version="20"), [event("BOOKMARK", "", "20")]), True, id="nothing here"
        ),
        pytest.param(
            [event("ADDED", "a", "25")], (page(version="25"),), True, id="the last was told"
        ),
        pytest.param(
            [event("BOOKMARK", "", "20")], (page(version="20"),), True, id="it says that it is all"
        ),
        pytest.param(
            [event("ADDED", "a", "15")],
            (page(version="20"), [event("ADDED", "a", "15"), event("BOOKMARK", "", "20")]),
            True,
            id="what was missed was told",
        ),
        pytest.param(
            [],
            (page(version="20"), [event("ADDED", "a", "15"), event("BOOKMARK", "", "21")]),
            False,
            id="what was missed is not told yet",
        ),
        pytest.param(
            [event("ADDED", "a", "12")],
            (page(version="20"), [event("DELETED", "a", "15"), event("ADDED", "b", "22")]),
            False,
            id="only the first of it is told",
        ),
        pytest.param([], (page(version="20"), [b""]), False, id="it is not known yet"),
    ],
)
async def test_a_watch_shows_all_once_it_has_told_what_was_missed_before_it_began(
    lines: list[Any],
    found: tuple[Any, ...],
    is_current: bool,  # noqa: FBT001 - a scenario
) -> None:
    async with watching(page(), [b"", *lines, asyncio.Event()], *found) as (reflector, _):
        assert reflector.current.is_set() is is_current


async def test_a_watch_that_tells_late_shows_all_from_then_on() -> None:
    more = asyncio.Event()
    lines = [b"", more, event("ADDED", "a", "15"), asyncio.Event()]
    missed = [event("ADDED", "a", "15"), event("BOOKMARK", "", "20")]
    async with watching(page(), lines, page(version="20"), missed) as (reflector, _):
        assert not reflector.current.is_set()
        more.set()
        await until(reflector.current.is_set)


async def test_what_was_missed_is_asked_for_until_it_is_known(pauses: list[float]) -> None:
    missed = refused(500)
    answers = (NO_ANSWER, page(version=""), b"{}", page(version="20"), missed, page())
    async with watching(page(), [b"", asyncio.Event()], *answers) as (reflector, _):
        assert reflector.current.is_set()
        slept = [pause for pause in pauses if pause]
        shares = [pause / most for pause, most in zip(slept, (0.2, 0.4, 0.8, 1.6), strict=True)]
        assert all(0.5 <= share <= 1 for share in shares)
        assert len(set(shares)) == 4  # Reservers that failed together do not come back together.


async def test_who_stood_still_waits_until_the_open_watch_has_told_what_happened_meanwhile() -> (
    None
):
    more = asyncio.Event()
    lines = [b"", more, event("ADDED", "a", "15"), asyncio.Event()]
    async with watching(page(), lines, page()) as (reflector, client):
        assert reflector.current.is_set()
        missed = [event("ADDED", "a", "15"), event("BOOKMARK", "", "20")]
        client.script += [page(version="20"), missed]
        reflector.distrust(6.0)
        assert not reflector.current.is_set()
        assert "is out of date" in reflector.obstacle()
        await until(lambda: not client.script)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not reflector.current.is_set()
        more.set()
        await until(reflector.current.is_set)
        assert not reflector.obstacle()


async def test_who_stood_still_while_nothing_happened_goes_on_at_once() -> None:
    async with watching(page(), [b"", asyncio.Event()], page()) as (reflector, client):
        client.script += [page()]
        reflector.distrust(40.0)
        await until(reflector.current.is_set)


@pytest.mark.usefixtures("pauses")
async def test_if_nobody_remembers_what_was_missed_all_is_listed() -> None:
    watch = [b"", asyncio.Event()]
    played = await play(page(), watch, page(version="20"), refused(410), page("a", version="30"))
    assert played.calls == ["get", "watch 10", "get", "watch 10", "get", "watch 30"]
    assert played.told[-2:] == ["listed a", "end"]


@pytest.mark.usefixtures("pauses")
async def test_a_watch_that_does_not_tell_what_was_missed_is_begun_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reserver.k8s.watch.lag.MUTE_AFTER_S", 0.001)
    mute = [b"", asyncio.Event()]
    missed = [event("ADDED", "a", "15"), event("BOOKMARK", "", "20")]
    played = await play(page(), mute, page(version="20"), missed)
    assert played.calls == ["get", "watch 10", "get", "watch 10", "watch 10"]


@pytest.mark.usefixtures("pauses")
async def test_a_watch_that_breaks_before_it_has_told_all_leaves_the_view_as_old_as_it_was() -> (
    None
):
    ticks = count(step=1)
    broken = [b"", event("ADDED", "a", "11"), NO_ANSWER]
    played = await play(page(), *[broken] * 4, timer=lambda: float(next(ticks)))
    assert "is out of date" in played.reflector.obstacle()


@pytest.mark.usefixtures("pauses")
async def test_a_broken_list_is_begun_anew() -> None:
    played = await play(page("a", more="t1"), refused(410), page("b"))
    assert played.calls == ["get", "get t1", "get", "watch 10"]


@pytest.mark.usefixtures("pauses")
async def test_what_only_a_list_that_broke_off_has_shown_is_gone() -> None:
    client, state = PatientClient(page("a", more="t1"), refused(410), page("b")), State()
    await run(Reflector(client, PATH, pod_view(state)), client)
    assert [pod.name for pod in state.pods] == ["b"]
