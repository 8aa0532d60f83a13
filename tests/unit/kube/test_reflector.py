import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest

from reserver.kube.watch import reflector as reflector_module
from reserver.kube.watch.cluster import pod_view
from reserver.kube.watch.pages import PAGE
from reserver.kube.watch.reflector import Reflector
from reserver.pacer import Pacer, Steps
from reserver.scheduling.state import State
from reserver.wire.k8s.objects import Metadata
from reserver.wire.k8s.watch import PartialObject, ReadEvent, metadata_of
from tests.unit.kube.fakes import NO_ANSWER, PatientClient, refused

PATH = "/api/v1/pods"


class Recorded:
    """A view that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.unreadable = 0
        self.events = ReadEvent[PartialObject]

    def list_began(self) -> None:
        pass

    def listed(self, item: msgspec.Raw) -> Steps:
        yield
        self.told.append(f"listed {_name(item)}")

    def list_ended(self, _: int) -> Steps:
        yield
        self.told.append("end")

    def changed(self, item: PartialObject | msgspec.Raw) -> Generator[None, None, Metadata]:
        yield
        self.told.append(f"changed {_name(item)}")
        return metadata_of(item)

    def deleted(self, item: PartialObject | msgspec.Raw) -> Generator[None, None, Metadata]:
        yield
        self.told.append(f"deleted {_name(item)}")
        return metadata_of(item)


def _name(item: PartialObject | msgspec.Raw) -> str:
    return metadata_of(item).name


def thing(name: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version}}


def page(*names: str, version: str = "10", more: str = "") -> dict[str, Any]:
    items = [thing(name) for name in names]
    return {"metadata": {"resourceVersion": version, "continue": more}, "items": items}


def event(kind: str, name: str, version: str) -> dict[str, Any]:
    return {"type": kind, "object": thing(name, version)}


def failure(code: int) -> dict[str, Any]:
    status = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}
    return {"type": "ERROR", "object": status}


class Played:
    """A reflector that has played a script to its end."""

    def __init__(self, client: PatientClient, view: Recorded, reflector: Reflector) -> None:
        self.client, self.told, self.reflector = client, view.told, reflector

    @property
    def calls(self) -> list[str]:
        """Return each call, with the version or the token that it goes on from."""
        asked = []
        for request in self.client.requests:
            params = request.params or {}
            on = params.get("resourceVersion") or params.get("continue")
            asked.append(f"{request.verb} {on}" if on else request.verb)
        return asked


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn is over before another begins: a script is played in its order."""
    monkeypatch.setattr(reflector_module, "Pacer", partial(Pacer, timer=lambda: 0.0))


async def play(
    *script: Any,
    selector: dict[str, str] | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> Played:
    client, view = PatientClient(*script), Recorded()
    reflector = Reflector(client, PATH, view, selector, timer=timer)
    await run(reflector, client)
    return Played(client, view, reflector)


async def run(reflector: Reflector, client: PatientClient) -> None:
    """Run a reflector until the script is played."""
    task = asyncio.create_task(reflector.run())
    waiting = asyncio.create_task(client.played.wait())
    done, _ = await asyncio.wait([task, waiting], timeout=2, return_when="FIRST_COMPLETED")
    waiting.cancel()
    task.cancel()
    if task in done:
        task.result()


async def test_all_pages_are_listed_and_then_watched_from_their_version() -> None:
    played = await play(page("a", "b", more="t1"), page("c", more="t2"), page(version="12"))
    assert played.told == ["listed a", "listed b", "listed c", "end"]
    assert played.calls == ["get", "get t1", "get t2", "watch 12"]
    assert all((r.params or {}).get("limit") == str(PAGE) for r in played.client.requests[:3])


async def test_the_next_page_is_asked_for_while_one_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector_module, "Pacer", partial(Pacer, turn_s=-1.0))  # Gives way always.
    client, view = PatientClient(page("a", "b", more="t1"), page("c")), Recorded()
    asked: list[int] = []
    taken = view.listed

    def listed(item: msgspec.Raw) -> Steps:
        yield from taken(item)
        asked.append(len(client.requests))

    monkeypatch.setattr(view, "listed", listed)
    await run(Reflector(client, PATH, view), client)
    assert asked == [2, 2, 2]
    assert view.told == ["listed a", "listed b", "listed c", "end"]


async def test_a_page_that_cannot_be_had_has_the_list_begin_anew() -> None:
    played = await play(page("a", more="t1"), refused(410), page("a", "b"))
    assert played.told == ["listed a", "listed a", "listed b", "end"]
    assert played.calls[:3] == ["get", "get t1", "get"]


async def test_an_event_of_a_quiet_watch_has_a_turn_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, gave_way = 0.0, []

    class Quiet(PatientClient):
        async def watch(
            self, path: str, params: Mapping[str, str], idle_limit_s: float
        ) -> AsyncGenerator[bytes]:
            nonlocal now
            async for line in super().watch(path, params, idle_limit_s):
                now += 60.0
                yield line

    class Noted(Pacer):
        async def give_way(self) -> bool:
            gave_way.append(await super().give_way())
            return gave_way[-1]

    monkeypatch.setattr(reflector_module, "Pacer", lambda: Noted(timer=lambda: now))
    client = Quiet(page(), [b"", event("ADDED", "a", "11"), event("ADDED", "b", "12")])
    view = Recorded()
    await run(Reflector(client, PATH, view), client)
    assert view.told == ["end", "changed a", "changed b"]
    assert gave_way
    assert not any(gave_way)


async def test_it_is_synced_only_after_the_last_page() -> None:
    assert not (await play(page("a", more="t1"))).reflector.synced.is_set()
    assert (await play(page("a"))).reflector.synced.is_set()


async def test_the_selector_is_sent_with_lists_and_watches() -> None:
    played = await play(page(), selector={"labelSelector": "x=y"})
    assert [(r.params or {}).get("labelSelector") for r in played.client.requests] == ["x=y"] * 2
    assert str(played.reflector) == "/api/v1/pods?labelSelector=x=y"


async def test_changes_are_told_in_their_order() -> None:
    played = await play(
        page(),
        [event("ADDED", "a", "11"), event("MODIFIED", "a", "12"), event("DELETED", "a", "13")],
    )
    assert played.told == ["end", "changed a", "changed a", "deleted a"]


@pytest.mark.parametrize(
    ("lines", "calls"),
    [
        pytest.param([event("ADDED", "a", "11")], ["get", "watch 10", "watch 11"], id="an event"),
        pytest.param([event("BOOKMARK", "", "15")], ["get", "watch 10", "watch 15"], id="bookmark"),
        pytest.param([], ["get", "watch 10", "watch 10"], id="nothing happened"),
        pytest.param(
            [event("ADDED", "a", "11"), NO_ANSWER],
            ["get", "watch 10", "watch 11"],
            id="the connection breaks",
        ),
        pytest.param(
            [event("BOOKMARK", "", "15"), failure(500)],
            ["get", "watch 10", "watch 15"],
            id="the server fails",
        ),
        pytest.param([refused(410)], ["get", "watch 10", "get"], id="410 as the answer"),
        pytest.param(
            [event("ADDED", "a", "11"), failure(410)], ["get", "watch 10", "get"], id="410 as event"
        ),
        pytest.param([refused(500)], ["get", "watch 10", "watch 10"], id="500 as the answer"),
    ],
)
@pytest.mark.usefixtures("pauses")
async def test_a_watch_is_resumed_where_it_ended_and_listed_anew_when_that_is_gone(
    lines: list[Any], calls: list[str]
) -> None:
    assert (await play(page(), lines)).calls == calls


@pytest.mark.usefixtures("pauses")
async def test_a_bookmark_is_nobodys_change() -> None:
    played = await play(page(), [event("BOOKMARK", "x", "15")])
    assert played.told == ["end"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":7,"object":{}}',
        b'{"type":"ADDED","object":7}',
        b'{"type":"ADDED","object":{"metadata":null}}',
        b'{"type":"BOOKMARK","object":[]}',
        b'{"type":"ERROR","object":7}',
        b'{"type":"ERROR","object":{"code":"x"}}',
    ],
)
async def test_a_malformed_event_does_not_end_the_watching(
    line: bytes, pauses: list[float]
) -> None:
    client = PatientClient(page(), [line], page("b"), [])
    task = asyncio.create_task(Reflector(client, PATH, pod_view(State())).run())
    for _ in range(100):
        await asyncio.sleep(0)
        if len(client.requests) >= 3:
            break
    assert not task.done()
    assert len(client.requests) >= 3
    assert [pause for pause in pauses if pause]
    task.cancel()


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"items":7}', b'{"metadata":7}', b"null"])
async def test_a_malformed_list_is_asked_for_again(raw: bytes, pauses: list[float]) -> None:
    played = await play(raw, page("a"))
    assert played.told == ["listed a", "end"]
    assert len(pauses) == 1


async def test_a_list_without_items_is_an_empty_one() -> None:
    played = await play({"metadata": {"resourceVersion": "5"}, "items": None})
    assert played.told == ["end"]


async def test_a_watch_that_was_well_before_it_broke_is_asked_for_again_soon(
    pauses: list[float],
) -> None:
    """On a quiet collection nothing but the open watch shows that all is well."""
    ticks = count(step=10)
    await play(page(), *[[b"", NO_ANSWER]] * 8, timer=lambda: float(next(ticks)))
    assert len(pauses) == 8
    assert max(pauses) < 0.5


async def test_a_watch_that_breaks_whenever_it_is_accepted_is_asked_for_less_and_less(
    pauses: list[float],
) -> None:
    await play(page(), *[[b"", NO_ANSWER]] * 8)
    assert pauses[-1] > 2


async def test_pauses_grow_to_some_seconds_and_start_anew_after_a_success(
    pauses: list[float],
) -> None:
    played = await play(*[NO_ANSWER] * 12, page(), [NO_ANSWER])
    assert played.reflector.synced.is_set()
    assert 0.05 < pauses[0] < 0.5
    assert 2.5 <= pauses[11] <= 7.5
    assert 0.05 < pauses[12] < 0.5
    assert played.reflector.lists == 13


async def until(condition: Callable[[], bool]) -> None:
    """Let everybody go on until a condition holds."""
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never happened")


@asynccontextmanager
async def watching(*script: Any) -> AsyncIterator[tuple[Reflector, PatientClient]]:
    """Run a reflector until a script is read, and all had the time to go on."""
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
            [event("ADDED", "a", "25")], (page(version="20"),), True, id="something later was told"
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
        reflector.doubt(6.0)
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
        reflector.doubt(40.0)
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
    monkeypatch.setattr("reserver.kube.watch.lag.MUTE_AFTER_S", 0.001)
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


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (refused(403), "rbac-reserver.yaml"),
        (refused(401), "credentials"),
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
