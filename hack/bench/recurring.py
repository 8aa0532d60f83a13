"""The cost of recurring reservations next to single ones: a start, and a Filter call."""

import asyncio
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from hack.bench.documents import NAMESPACE, encode, new_pod
from hack.bench.replay import Replay, pages
from hack.bench.report import TooSlow, microseconds, progress, table, times
from hack.bench.rounds import Timings, side_by_side
from hack.bench.scale import Scale
from hack.bench.world import NOW, SAMPLED, Size, node_names, owner_name, seat_of, state
from reserver.base.gc_tuning import brief_collections
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.reservations.enums import Phase
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.status import ObjectStatuses
from reserver.stores.status import RoomReport
from reserver.stores.stores import object_view

_ONCE, _AGAIN = "once", "again, each at a minute of its own"
_NAMES, _CALLS = 500, 40
CREATED = "2030-03-17T17:00:00Z"
"""Less than an hour before `NOW`, so that none has expired."""
_IN_A_NAMESPACE = 500
MOST_S = 1.0
"""Most additional seconds of CPU of a start with recurring reservations."""


class _Api:
    """Answers writes of statuses as the API server does.

    Attributes:
        took: its own seconds of CPU, to be subtracted.
    """

    def __init__(self, objects: dict[str, dict[str, Any]]) -> None:
        self._objects = objects
        self.took = 0.0

    async def patch(self, path: str, body: dict[str, Any]) -> bytes:
        """Return the object with its new status."""
        began = time.process_time()
        item = self._objects[path.split("/")[-2]]
        metadata = item["metadata"] | {"resourceVersion": "2"}
        answer = encode(item | {"metadata": metadata, "status": body["status"]})
        self.took += time.process_time() - began
        return answer


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of single and recurring reservations.

    Raises:
        TooSlow: recurring reservations make a start too slow.
    """
    kinds = {name: _objects(scale, comes_again=name != _ONCE) for name in (_ONCE, _AGAIN)}
    cpu: dict[str, list[float]] = {name: [] for name in kinds}
    states = {}
    for turn in range(scale.starts):
        for name, objects in kinds.items():
            progress(f"start {turn + 1} of {scale.starts}: {len(objects):,} reservations, {name}")
            states[name], seconds = asyncio.run(_start(scale, objects))
            cpu[name].append(seconds)
    calls = _calls(scale, states)
    rows = []
    for name in kinds:
        start, call = statistics.median(cpu[name]), calls[name]
        more = start - statistics.median(cpu[_ONCE])
        ratio = times(call.ratio_to(calls[_ONCE]))
        rows.append((name, f"{start:.2f} s", f"{more:.2f} s", microseconds(call.seconds()), ratio))
    header = ("they come", "a start, CPU", "more", "a Filter call", "ratio")
    title = f"{scale.entries:,} reservations, read, held and acknowledged at a start"
    yield table(title, header, rows)
    more = statistics.median(cpu[_AGAIN]) - statistics.median(cpu[_ONCE])
    if more > MOST_S:
        raise TooSlow(f"{scale.entries:,} that recur: {more:.2f} s more, {MOST_S} s at most")


def _objects(scale: Scale, *, comes_again: bool) -> dict[str, dict[str, Any]]:
    found = {}
    for index in range(scale.entries):
        spec: dict[str, Any] = {
            "owners": [{"pod": {"name": owner_name(index)}}],
            "node": seat_of(index, scale.nodes),
            "resources": {"cpu": "1", "memory": "4Gi"},
        }
        if comes_again:
            cron = f"{index % 60} {index // 60 % 24} * * {index % 7}"
            spec["schedule"] = {"cron": cron, "duration": "167h", "timeZone": "Europe/Berlin"}
        namespace = f"{NAMESPACE}-{index // _IN_A_NAMESPACE}"
        metadata = {"name": f"r-{index}", "namespace": namespace, "uid": f"u-{index}"}
        created = {"creationTimestamp": CREATED, "resourceVersion": "1"}
        found[f"r-{index}"] = {"metadata": metadata | created, "spec": spec}
    return found


async def _start(scale: Scale, objects: dict[str, dict[str, Any]]) -> tuple[State, float]:
    """Return a state with the objects as holds, and the seconds of CPU for that."""
    world = state(Size(nodes=scale.nodes, pods=0))
    replay = Replay(pages(map(encode, objects.values()), len(objects)), clock=time.process_time)
    store = ObjectCache(world.ledger, lambda: NOW, lambda *_: None, home="reserver-system")
    api = _Api(objects)
    writer = ObjectStatuses(
        cast("ApiClient", api), store, lambda *_: None, RoomReport(lambda _: None)
    )
    with brief_collections():
        await replay.feed(object_view(store))
        began = time.process_time()
        await writer.write(world)
        took = sum(replay.busy) + time.process_time() - began - api.took
    active = sum(world.ledger.phase(ref) is Phase.ACTIVE for ref in world.ledger.refs())
    if writer.writes != len(objects) or active < 0.9 * len(objects):
        raise RuntimeError(f"{active} hold, {writer.writes} are acknowledged")
    return world, took


def _calls(scale: Scale, states: dict[str, State]) -> dict[str, Timings]:
    """Return the timings of a Filter call for a pod without a reservation."""
    pod = decode(PodObject, encode(new_pod("web-1"))).value()
    names = node_names(scale.nodes, order=SAMPLED)[:_NAMES]
    calls = {name: partial(filter_nodes, pod, names, each, NOW) for name, each in states.items()}
    return side_by_side(calls, rounds=scale.rounds, calls=_CALLS)
