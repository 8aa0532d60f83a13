"""The cost of a start per pod in function calls, which do not depend on the machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from types import FrameType

import pytest

import reserver
from hack.bench.documents import encode, node_document, running_pods
from hack.bench.replay import Replay, pages
from reserver.base.pacer import Pacer
from reserver.extender.cluster_watches import node_view, pod_view
from reserver.k8s.objects import constraints, pods, requests
from reserver.k8s.watch import reflector
from reserver.k8s.watch.collection import PAGE
from reserver.scheduling.state import State

CODE = str(Path(reserver.__file__).parent)
NODES = 100


@pytest.fixture(autouse=True)
def nobody_else_wants_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of pauses of a pass depends on the machine."""
    monkeypatch.setattr(reflector, "Pacer", partial(Pacer, turn_s=inf))


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> None:
    """A cache that other tests have filled evicts an entry for each pod, which costs calls."""
    for known in (constraints._KNOWN, pods._LABELS, pods._CONTROLLERS, requests._REQUESTS):
        known.clear()


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the functions of Reserver, and their callees, that run in the block."""
    count = [0]

    def note(frame: FrameType, event: str, _: object) -> None:
        if event in {"call", "c_call"} and frame.f_code.co_filename.startswith(CODE):
            count[0] += 1

    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(None)


async def cost(pods: int) -> int:
    """Return the number of functions that a list of so many pods runs."""
    state = State()
    nodes = (encode(node_document(index)) for index in range(NODES))
    await Replay(pages(nodes, NODES)).feed(node_view(state))
    replay = Replay(pages(running_pods(pods, NODES), pods))
    with counted() as count:
        await replay.feed(pod_view(state))
    assert len(state.pods) == pods
    return count[0]


async def test_a_listed_pod_runs_few_functions_however_many_are_known() -> None:
    costs = [await cost(pods * PAGE) for pods in (1, 2, 8)]
    page = costs[1] - costs[0]
    assert abs(costs[2] - costs[1] - 6 * page) < page / 10
    assert page / PAGE < 170  # 141 with Python 3.11


def _events(count: int) -> list[bytes]:
    """Return the watch events of pods: each pod is created, bound, and runs."""
    shown = []
    for number, raw in enumerate(running_pods(count, NODES)):
        pod = json.loads(raw)
        version = 200_000_000 + 3 * number
        for event, phase, is_bound in (
            ("ADDED", "Pending", False),
            ("MODIFIED", "Pending", True),
            ("MODIFIED", "Running", True),
        ):
            version += 1
            metadata = pod["metadata"] | {"resourceVersion": str(version)}
            spec = pod["spec"] | ({} if is_bound else {"nodeName": ""})
            status = pod["status"] | {"phase": phase}
            document = {"metadata": metadata, "spec": spec, "status": status}
            shown.append(encode({"type": event, "object": document}))
    return shown


async def _watched(pods: int) -> int:
    """Return the number of functions that the creation, binding and start of so many pods run."""
    state = State()
    replay = Replay(pages(running_pods(1, NODES), 1), _events(pods))
    with counted() as count:
        await replay.feed(pod_view(state))
    assert len(state.pods) == pods
    return count[0]


async def test_a_pod_that_a_watch_shows_runs_few_functions() -> None:
    few, many = [await _watched(pods) for pods in (100, 200)]
    assert (many - few) / 100 < 400  # 383 with Python 3.11
