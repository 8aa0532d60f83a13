"""Edits of a store ConfigMap, one entry at a time, with many entries and with few."""

import asyncio
from collections.abc import Iterator

import msgspec

from hack.bench.documents import encode
from hack.bench.replay import Replay, pages
from hack.bench.report import kilobytes, milliseconds, progress, table, times
from hack.bench.rounds import Timings
from hack.bench.scale import Scale
from hack.bench.world import NOW, owner_name
from reserver.scheduling.state import State
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.stores import store_view

_FEW = 10
_CPUS = 2


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of reading a store and of editing it."""
    progress(f"a store of {scale.entries:,} entries")
    counts = (_FEW, scale.entries)
    busy: dict[int, list[list[float]]] = {count: [] for count in counts}
    for _ in range(max(scale.rounds // 3, 1)):
        for count in counts:
            busy[count].append(asyncio.run(_read_and_edit(count, scale.nodes)))
    rows = []
    for count in counts:
        first = Timings([each[:1] for each in busy[count]])
        edit = Timings([sorted(each[1:]) for each in busy[count]])
        size = len(_configmap(count, scale.nodes, 0))
        rows.append(
            (
                f"{count:,}",
                kilobytes(size),
                milliseconds(first.seconds()),
                milliseconds(edit.seconds()),
                times(edit.ratio_to(first)),
            )
        )
    header = ("entries", "size", "reading all", "taking an edit of one", "ratio")
    yield table("A store ConfigMap", header, rows)


async def _read_and_edit(entries: int, nodes: int) -> list[float]:
    """Return the seconds of the first read, then those of each edit."""
    whole = _configmap(entries, nodes, _CPUS)
    edits = [
        encode({"type": "MODIFIED", "object": msgspec.Raw(_configmap(entries, nodes, cpus))})
        for cpus in range(_CPUS + 1, _CPUS + 6)
    ]
    replay = Replay(pages([whole], 1), edits)
    store = ConfigMapCache(State().ledger, lambda: NOW, lambda metadata, problem: None)  # noqa: ARG005
    await replay.feed(store_view(store, lambda _: True))
    return replay.busy


def _configmap(entries: int, nodes: int, cpus: int) -> bytes:
    """Return a ConfigMap whose middle entry holds `cpus` CPUs."""
    data = {}
    for index in range(entries):
        spec = {
            "owners": [{"pod": {"name": owner_name(index)}}],
            "node": f"n{index % nodes}",  # Longer names would not fit into 1 MiB.
            "resources": {"cpu": cpus if index == entries // 2 else _CPUS},
        }
        data[f"r-{index}"] = encode(spec).decode()
    metadata = {"name": "reservations", "namespace": "reserver-system", "resourceVersion": "1"}
    return encode({"metadata": metadata, "data": data})
