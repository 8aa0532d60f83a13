import asyncio
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest

from reserver.base.pacer import Pacer, Steps
from reserver.errors import ApiError
from reserver.extender.cluster_watches import pod_view
from reserver.k8s.watch import reflector as reflector_module
from reserver.k8s.watch.collection import PAGE
from reserver.k8s.watch.lag import Lag
from reserver.k8s.watch.reflector import IDLE_LIMIT_S, Reflector
from reserver.scheduling.state import State
from tests.unit.k8s.fakes import NO_ANSWER, PatientClient, refused
from tests.unit.k8s.watch.scripts import PATH, Recorded, event, page, play, run


def failure(code: int) -> dict[str, Any]:
    status = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}
    return {"type": "ERROR", "object": status}


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


@pytest.mark.parametrize(("reason", "unseen_s"), [("Timeout", IDLE_LIMIT_S), ("", 0.0)])
async def test_a_connection_that_was_silent_may_have_been_dead_for_as_long(
    reason: str, unseen_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[float] = []
    begin = Lag.begin

    def recorded(lag: Lag, at: float) -> None:
        begun.append(at)
        begin(lag, at)

    monkeypatch.setattr(Lag, "begin", recorded)
    await play(page(), [b"", ApiError(0, reason, "no answer")], timer=lambda: 1000.0)
    assert begun[-1] == 1000.0 - unseen_s
