"""Placing reservations without a node: one decision, and a new node for many that wait."""

import asyncio
import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from hack.bench.documents import NAMESPACE, encode, node_document
from hack.bench.report import milliseconds, progress, table
from hack.bench.rounds import P99, side_by_side
from hack.bench.scale import Scale
from hack.bench.world import NOW, Size, state
from reserver.base.pacer import Pacer, outcome
from reserver.cluster.pod import PodName
from reserver.extender.placer import Placer
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase, Strategy
from reserver.reservations.placement import ANYWHERE, Placement
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.placement import Placed, placing
from reserver.scheduling.state import State
from reserver.stores.codec import placement_codec

_CALLS = 20
_SLOTS = 100
_HELPED = 10
_LARGE = 100_000


def measure(scale: Scale) -> Iterator[str]:
    """Yield the tables of placing."""
    progress("placing: building the cluster")
    built = state(Size(nodes=scale.nodes, pods=scale.started_pods))
    progress("placing")
    where = f"{scale.nodes:,} nodes, {scale.started_pods:,} pods"
    calls: dict[str, Any] = {}
    for name, reservation in _kinds().items():
        find = partial(_find, reservation, built)
        if bool(find().parts) == ("no room" in name):
            raise RuntimeError(name)
        calls[name] = find
    taken = side_by_side(calls, rounds=scale.rounds, calls=_CALLS)
    rows = [(n, milliseconds(t.seconds()), milliseconds(t.seconds(P99))) for n, t in taken.items()]
    yield table(f"Placing one reservation: {where}", ("what it asks for", "p50", "p99"), rows)
    crowds = [_wait(scale, alike=alike, count=count) for alike, count in _CROWDS]
    header = ("who waits", "placed", "time", "longest without giving way")
    yield table(f"A node comes, with room for {_HELPED}: {scale.nodes:,} nodes", header, crowds)


def _find(reservation: Reservation, built: State) -> Placed:
    return outcome(placing(reservation, reservation.slots, built))


_CROWDS = ((True, 1_000), (True, 10_000), (False, 1_000), (False, 10_000))


def _kinds() -> dict[str, Reservation]:
    spread = Placement(strategy=Strategy.SPREAD)
    constraint = {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/label-0",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
    }
    over_zones = placement_codec.read({"topologySpreadConstraints": [constraint]}, NAMESPACE)
    return {
        "a slot": _reservation(0, 100),
        f"{_SLOTS} slots, packed": _reservation(0, 100, slots=_SLOTS),
        f"{_SLOTS} slots, spread": _reservation(0, 100, slots=_SLOTS, placement=spread),
        "a slot that has no room, and why": _reservation(0, _LARGE),
        "a slot, with a spread constraint": _reservation(0, 100, placement=over_zones),
        "10 slots, with a spread constraint": _reservation(0, 100, slots=10, placement=over_zones),
    }


def _reservation(
    index: int, cpu: int, slots: int = 1, placement: Placement = ANYWHERE
) -> Reservation:
    return identified(
        Reservation(
            ref=Ref("reserver-system", "bench", f"r-{index}"),
            digest="",
            node="",
            owners=(PodName(NAMESPACE, f"owner-{index}"),),
            resources={"pods": 1, "cpu": cpu},
            slots=slots,
            placement=placement,
        )
    )


@dataclass
class _Turns:
    """Longest block of the event loop, in seconds."""

    longest: float = 0.0

    async def run(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.perf_counter() - before)


def _wait(scale: Scale, *, alike: bool, count: int) -> tuple[str, ...]:
    """Return the cost of placing the waiting reservations that fit on a new node."""
    progress(f"placing: {count} who wait")
    placer = Placer(lambda: NOW)
    built = State(placer)
    _fill(built, scale)
    for index in range(count):
        built.ledger.put(_reservation(index, _LARGE + (0 if alike else index)))
    turns = _Turns()

    async def look() -> float:
        await placer.look(built, Pacer())  # Nothing fits yet.
        document = node_document(scale.nodes)
        document["status"]["allocatable"]["cpu"] = f"{(_LARGE + _HELPED) * _HELPED}m"
        built.node_seen(decode(NodeObject, encode(document)).value())
        gc.collect()
        watch = asyncio.create_task(turns.run())
        began = time.perf_counter()
        await placer.look(built, Pacer())
        taken = time.perf_counter() - began
        watch.cancel()
        return taken

    seconds = asyncio.run(look())
    placed = sum(phase is Phase.ACTIVE for _, phase in built.ledger)
    words = f"{count:,} {'alike' if alike else 'of different sizes'}"
    return words, f"{placed}", milliseconds(seconds), milliseconds(turns.longest)


def _fill(built: State, scale: Scale) -> None:
    """Add the nodes without pods, which do not matter to waiting reservations."""
    for index in range(scale.nodes):
        built.node_seen(decode(NodeObject, encode(node_document(index))).value())
    built.is_complete = True
