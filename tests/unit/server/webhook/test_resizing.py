"""Resizes are judged on what the watches have shown, and wait a moment for what they missed."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from reserver.errors import NotReady
from reserver.server.webhook import resizing
from reserver.server.webhook.resizing import Resizes
from reserver.wire.patching.review import ReviewRequest, read_request
from tests.builders import NOW, node, pod, reservation, state_of
from tests.unit.server.fakes import FakeReadiness

HOLD = reservation("r", cpu="3")


def asked(cpu: str) -> ReviewRequest:
    """Return that web-0, which has one CPU of four, is to have so much."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": "web-0", "namespace": "shop", "uid": "uid-web-0"}
    grown = {"metadata": metadata, "spec": {"nodeName": "worker-1", "containers": [container]}}
    request = {"uid": "u", "namespace": "shop", "operation": "UPDATE", "object": grown}
    return read_request(json.dumps({"request": request}).encode())


@pytest.fixture
def readiness() -> FakeReadiness:
    return FakeReadiness()


@pytest.fixture
def state() -> Any:
    state = state_of(node("worker-1", cpu="4"))
    state.pod_seen(pod("web-0", node="worker-1", cpu="1"))
    return state


@pytest.fixture
def judge(state: Any, readiness: FakeReadiness) -> Callable[[ReviewRequest], Any]:
    return Resizes(state, lambda: NOW, readiness).judge


async def test_a_resize_waits_for_a_hold_that_a_broken_watch_is_about_to_show(
    state: Any, readiness: FakeReadiness, judge: Callable[[ReviewRequest], Any]
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
    state: Any,
    readiness: FakeReadiness,
    judge: Callable[[ReviewRequest], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resizing, "PATIENCE_S", 0.01)
    readiness.current.clear()
    state.ledger.put(HOLD)
    assert "held by reservation" in (await judge(asked("3")) or "")
    readiness.said = ("pods are out of date",)
    with pytest.raises(NotReady, match="pods are out of date"):
        await judge(asked("3"))
