"""Passes over windows and nodes: what comes during one, and a clock that is corrected after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from reserver.base.pacer import Pacer
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects.nodes import MAINTENANCE_ANNOTATION
from reserver.k8s.objects.objects import ResourceMetadata, encode
from reserver.k8s.objects.times import show_moment
from reserver.maintenance.codec import WindowObject
from reserver.maintenance.controller import MaintenanceController
from reserver.moves.index import MoveIndex
from reserver.scheduling.state import State
from tests.builders import NOW, node
from tests.unit.k8s.fakes import always

HOUR = 3600.0


class Cluster(ApiClient):
    """Nodes without pods, and the windows' controller.

    Attributes:
        cordons: the cordons (True) and uncordons that were written, by node.
        meanwhile: called while the pods of a node are read.
    """

    def __init__(self, *nodes: str) -> None:
        self.cordons: list[tuple[str, bool]] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.now = NOW
        self._state = State()
        self._windows: dict[str, WindowObject] = {}
        self._nodes = {
            name: {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {}} for name in nodes
        }
        for name in nodes:
            self._state.node_seen(node(name))
        clock, recorder = (lambda: self.now), Recorder(self, lambda: self.now)
        parts = (self, clock, self._state, MoveIndex(lambda _: None), recorder, always)
        self.controller = MaintenanceController(*parts, unsuited=lambda *_: None, not_ready_s=300.0)

    def put(self, name: str, revision: int = 1, **spec: Any) -> None:
        """Show a window of the node of its name, which lasts an hour."""
        times = {"start": show_moment(NOW), "end": show_moment(NOW + HOUR), "nodes": [name]}
        metadata = ResourceMetadata(name=name, uid=name, resource_version=str(revision))
        self._windows[name] = WindowObject(metadata, Raw(encode(times | spec)))
        self.controller.windows.put(self._windows[name])

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        assert params is None
        return json.dumps(self._nodes[path.rpartition("/")[2]]).encode()

    async def get_bounded(
        self, path: str, most_bytes: int, params: Mapping[str, str] | None = None
    ) -> bytes:
        assert (path, most_bytes > 0, bool(params)) == ("/api/v1/pods", True, True)
        await asyncio.sleep(0)
        self.meanwhile()
        return b'{"items": []}'

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        assert content_type == MERGE_PATCH
        patch, name = json.loads(encode(body)), path.removesuffix("/status").rpartition("/")[2]
        if "/nodes/" not in path:
            said = Raw(encode(patch["status"]))
            return encode(msgspec.structs.replace(self._windows[name], status=said))
        there: Any = self._nodes[name]
        there |= {key: patch[key] for key in ("spec", "status") if key in patch}
        if annotations := patch["metadata"].get("annotations"):
            there["metadata"]["annotations"] = {k: text or "" for k, text in annotations.items()}
        if "spec" in patch:
            self.cordons.append((name, bool(patch["spec"]["unschedulable"])))
        maintenance = there["metadata"].get("annotations", {}).get(MAINTENANCE_ANNOTATION, "")
        is_cordoned = bool(there["spec"].get("unschedulable"))
        shown = replace(node(name), unschedulable=is_cordoned, maintenance=maintenance)
        self._state.node_seen(shown)
        return json.dumps(there).encode()


async def test_a_window_that_is_corrected_during_a_pass_keeps_its_node_cordoned() -> None:
    cluster, broken = Cluster("a", "b"), {"maxUnavailable": 0}
    for name in ("a", "b"):
        cluster.put(name)
    await cluster.controller.look(Pacer())
    assert cluster.cordons == [("a", True), ("b", True)]
    cluster.put("a", 2, **broken)
    cluster.meanwhile = lambda: cluster.put("a", 3)
    for _ in range(2):
        cluster.now += 6.0
        await cluster.controller.look(Pacer())
    assert cluster.cordons == [("a", True), ("b", True)]


async def test_a_window_that_is_extended_during_a_pass_keeps_its_nodes_cordoned() -> None:
    cluster = Cluster("a", "b", "c")
    for name in ("a", "b"):
        cluster.put(name)
    cluster.put("c", end=show_moment(NOW + 9 * HOUR))
    await cluster.controller.look(Pacer())
    cordons = list(cluster.cordons)
    cluster.now += HOUR
    cluster.meanwhile = lambda: cluster.put("a", 2, end=show_moment(NOW + 2 * HOUR))
    for _ in range(3):
        cluster.now += 1.0
        await cluster.controller.look(Pacer())
    assert cluster.cordons == [*cordons, ("b", False)]


async def test_a_status_that_changes_during_a_pass_delays_no_write() -> None:
    cluster = Cluster("a", "b")
    cluster.put("a")
    await cluster.controller.look(Pacer())
    cluster.put("b")
    cluster.meanwhile = lambda: cluster.put("a", 2)
    cluster.now += 6.0
    await cluster.controller.look(Pacer())
    assert cluster.cordons == [("a", True), ("b", True)]


@pytest.mark.parametrize("ahead_s", [-40 * HOUR, 9 * HOUR])
async def test_a_window_is_looked_at_each_minute_as_clocks_are_corrected(ahead_s: float) -> None:
    """A timer of hours does not notice that the machine was suspended for hours, either."""
    cluster = Cluster("a")
    cluster.now += ahead_s
    cluster.put("a", drainBefore="0s")
    await cluster.controller.look(Pacer())
    assert 0 < cluster.controller.queue.wait_s() <= 60
