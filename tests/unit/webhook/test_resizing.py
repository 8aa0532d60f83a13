"""Resizes are judged on the views of the watches, and wait a moment for a watch that lags."""

import asyncio
import gc
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from reserver.errors import InvalidInput, NotReady
from reserver.scheduling.in_flight import PendingResize
from reserver.scheduling.state import State
from reserver.webhook import handlers
from reserver.webhook.handlers import Resizes
from reserver.webhook.review import ReviewRequest, read_request
from tests.builders import NOW, node, pod, requested, reservation, state_of
from tests.unit.extender.fakes import FakeReadiness

Judge = Callable[[ReviewRequest], Coroutine[None, None, str | None]]

HOLD = reservation("r", cpu="3")
WEB = replace(pod("web-0", node="worker-1", cpu="1"), revision=5)


def web_0(cpu: str, **metadata: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    own = {"name": "web-0", "namespace": "shop", "uid": "uid-web-0", "resourceVersion": "5"}
    return {
        "metadata": own | metadata,
        "spec": {"nodeName": "worker-1", "containers": [container]},
    }


def asked(cpu: str, **request: Any) -> ReviewRequest:
    """Return a request to resize web-0, which has one CPU of four."""
    whole = {
        "uid": "u",
        "namespace": "shop",
        "name": "web-0",
        "operation": "UPDATE",
        "object": web_0(cpu),
        "oldObject": web_0("1"),
    }
    return read_request(json.dumps({"request": whole | request}).encode())


@pytest.fixture
def readiness() -> FakeReadiness:
    return FakeReadiness()


@pytest.fixture
def state() -> State:
    state = state_of(node("worker-1", cpu="4"))
    state.pod_seen(WEB)
    return state


@pytest.fixture
def judge(state: State, readiness: FakeReadiness) -> Judge:
    return Resizes(state, lambda: NOW, readiness).judge


async def test_a_resize_waits_for_a_hold_that_a_broken_watch_is_about_to_show(
    state: State, readiness: FakeReadiness, judge: Judge
) -> None:
    readiness.current.clear()
    judging = asyncio.create_task(judge(asked("3")))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not judging.done()
    state.ledger.put(HOLD)
    readiness.current.set()
    assert "held by reservation" in (await judging or "")


async def test_after_a_moment_it_is_judged_by_what_is_known(
    state: State, readiness: FakeReadiness, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "PATIENCE_S", 0.01)
    readiness.current.clear()
    state.ledger.put(HOLD)
    assert "held by reservation" in (await judge(asked("3")) or "")
    readiness.said = ("pods are out of date",)
    with pytest.raises(NotReady, match="pods are out of date"):
        await judge(asked("3"))


async def test_a_resize_waits_until_the_watch_shows_the_pod_as_it_is_now(
    state: State, judge: Judge
) -> None:
    """The pod was bound, labelled or resized a moment ago."""
    state.ledger.put(HOLD)
    now = {"object": web_0("2", resourceVersion="6"), "oldObject": web_0("1", resourceVersion="6")}
    judging = asyncio.create_task(judge(asked("2", **now)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not judging.done()
    state.pod_seen(replace(WEB, revision=6))
    assert "held by reservation" in (await judging or "")


@pytest.mark.parametrize("is_infeasible", [False, True])
async def test_the_spec_that_is_asked_for_is_judged_whatever_became_of_another(
    state: State, judge: Judge, *, is_infeasible: bool
) -> None:
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    requests = {"cpu": "1"}
    said = {"name": "main", "allocatedResources": requests, "resources": {"requests": requests}}
    status = {"containerStatuses": [said], "conditions": [condition] if is_infeasible else []}
    state.ledger.put(HOLD)
    more = {"object": web_0("4") | {"status": status}, "oldObject": web_0("1") | {"status": status}}
    assert "needs 3 more" in (await judge(asked("4", **more)) or "")


FORGED: list[dict[str, Any]] = [
    {"namespace": "bank"},
    {"name": "web-1"},
    {"object": web_0("1k", uid="uid-web-1"), "oldObject": web_0("1", uid="uid-web-1")},
    {"object": web_0("1k", namespace="bank"), "oldObject": web_0("1", namespace="bank")}
    | {"namespace": "bank"},
    {"object": web_0("1k", name="web-1"), "oldObject": web_0("1", name="web-1"), "name": "web-1"},
    {"oldObject": web_0("1", resourceVersion="4")},
    {"oldObject": web_0("1", resourceVersion="")},
    {"oldObject": web_0("1", resourceVersion="9" * 18)},
    {"oldObject": None},
    {"object": web_0("1k") | {"spec": {"nodeName": "no-such-node"}}},
    {
        "object": web_0("1k") | {"spec": {"nodeName": "no-such-node"}},
        "oldObject": web_0("1") | {"spec": {"nodeName": "no-such-node"}},
    },
    {"dryRun": True},
]


@pytest.mark.parametrize("forged", FORGED, ids=",".join)
async def test_what_is_not_said_of_the_pod_that_the_watch_shows_changes_nothing(
    state: State, judge: Judge, forged: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "PATIENCE_S", 0.01)
    with suppress(InvalidInput):
        await judge(asked("1k", **forged))
    assert requested(state, "worker-1") == 1000
    assert len(state.pending_resizes) == 0
    assert await judge(asked("1k")) is None
    assert requested(state, "worker-1") == 4000  # All that there is, and no more.


async def test_where_room_is_held_no_pod_grows_that_the_watch_does_not_show(
    state: State, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "PATIENCE_S", 0.01)
    later = {"oldObject": web_0("1", resourceVersion="6")}
    assert await judge(asked("2", **later)) is None
    state.ledger.put(reservation("r", cpu="1"))
    assert "try again" in (await judge(asked("2", **later)) or "")


REVIEWS = 50


@pytest.mark.parametrize("names", [1, 60])
@pytest.mark.parametrize("is_new", [False, True], ids=["the same", "others each time"])
async def test_reviews_of_one_pod_do_not_pile_up(
    state: State, judge: Judge, names: int, *, is_new: bool
) -> None:
    """300 made-up reviews of 2 KB once took 120 ms each, and 276 MiB."""
    web = replace(WEB)
    state.pod_seen(web)
    for review in range(REVIEWS):
        made_up = {f"evil.io/{review * is_new}-{each}": "1" for each in range(names)}
        spec = web_0("2")
        spec["spec"]["containers"][0]["resources"]["requests"] |= made_up
        assert await judge(asked("2", object=spec)) is None
    growths = (each for each in gc.get_objects() if isinstance(each, PendingResize))
    assert [each.more for each in growths if each.pod is web] == [{"cpu": 1000}]
    counted = state.snapshot.counted(WEB.uid)
    assert counted is not None
    assert counted.pod.requests.keys() == {"cpu", "pods"}


@pytest.mark.parametrize("reviews", [1, 3])
async def test_a_growth_ends_in_time_and_the_next_one_too(
    state: State, judge: Judge, monkeypatch: pytest.MonkeyPatch, reviews: int
) -> None:
    monkeypatch.setattr(handlers, "RETURN_AFTER_S", 0.0)
    for _ in range(2):
        for _ in range(reviews):
            assert await judge(asked("2")) is None
        assert requested(state, "worker-1") == 2000
        for _ in range(3):
            await asyncio.sleep(0)
        assert requested(state, "worker-1") == 1000
        assert len(state.pending_resizes) == 0
