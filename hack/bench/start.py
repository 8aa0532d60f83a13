"""The cost of a start: real reflectors, fed from memory, in their own process.

Run as a program it is that process: it prints its result as JSON.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import msgspec
import uvloop

from hack.bench.documents import encode, node_document, running_pods
from hack.bench.replay import Replay, pages
from hack.bench.report import kilobytes, microseconds, milliseconds, progress, table, times
from hack.bench.scale import Scale
from hack.programs import memory
from reserver.base.gc_tuning import brief_collections
from reserver.extender.cluster_watches import node_view, pod_view
from reserver.process import logs
from reserver.scheduling.state import State
from reserver.settings.serve import LogLevel

RESERVER, DICTS = "reserver", "dicts"
_DICTS_PART = 10
"""The dicts get a tenth of the cluster, as the whole would take gigabytes."""


class Found(msgspec.Struct, frozen=True):
    """The cost of one start.

    Attributes:
        pods: number of pods.
        seconds: time for reading all nodes and pods.
        longest: longest time of one page, which blocks all calls.
        bytes: highest growth of the process.
    """

    pods: int
    seconds: float
    longest: float
    bytes: int


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of starts."""
    sizes = {
        RESERVER: (scale.nodes, scale.started_pods),
        DICTS: (scale.nodes // _DICTS_PART, scale.started_pods // _DICTS_PART),
    }
    found: dict[str, list[Found]] = {RESERVER: [], DICTS: []}
    for turn in range(scale.starts):
        for kind, (nodes, pods) in sizes.items():
            progress(f"start {turn + 1} of {scale.starts}: {kind}, {nodes:,} nodes, {pods:,} pods")
            found[kind].append(_in_child(kind, nodes, pods))
    rows = [_row(kind, found[kind], found[RESERVER]) for kind in (RESERVER, DICTS)]
    header = (
        *("into what", "pods", "time", "memory", "longest page"),
        *("time a pod", "ratio", "memory a pod", "ratio"),
    )
    title = f"A start: reading {scale.nodes:,} nodes and {scale.started_pods:,} pods"
    yield table(title, header, rows)


def _row(kind: str, found: list[Found], base: list[Found]) -> tuple[str, ...]:
    def middle(number: Callable[[Found], float]) -> float:
        return statistics.median(map(number, found))

    def ratio(number: Callable[[Found], float]) -> str:
        pairs = zip(found, base, strict=True)
        return times(statistics.median(number(own) / number(other) for own, other in pairs))

    def time_each(one: Found) -> float:
        return one.seconds / one.pods

    def bytes_each(one: Found) -> float:
        return one.bytes / one.pods

    title = "`State`, through the views" if kind == RESERVER else "`json` into dicts, kept"
    return (
        title,
        f"{found[0].pods:,}",
        f"{middle(lambda one: one.seconds):.1f} s",
        f"{middle(lambda one: one.bytes) / 1e6:.0f} MB",
        milliseconds(middle(lambda one: one.longest)),
        *(microseconds(middle(time_each)), ratio(time_each)),
        *(kilobytes(middle(bytes_each)), ratio(bytes_each)),
    )


def _in_child(kind: str, nodes: int, pods: int) -> Found:
    command = [sys.executable, "-m", "hack.bench.start", kind, str(nodes), str(pods)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Found)


async def _start(kind: str, nodes: int, pods: int) -> Found:
    before = memory("self")
    if kind == RESERVER:
        busy = await read_into(State(), nodes, pods)
    else:
        busy = [seconds for items in _lists(nodes, pods) for seconds in _read_into_dicts(items, {})]
    return Found(pods, sum(busy), max(busy), memory("self") - before)


async def read_into(
    state: State, nodes: int, pods: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Read a cluster as a start does; return the seconds of each page."""
    node_list, pod_list = (Replay(items, clock=clock) for items in _lists(nodes, pods))
    with brief_collections():
        await node_list.feed(node_view(state))
        await pod_list.feed(pod_view(state))
    return [*node_list.busy, *pod_list.busy]


def _lists(nodes: int, pods: int) -> tuple[Iterator[bytes], Iterator[bytes]]:
    node_documents = (encode(node_document(index)) for index in range(nodes))
    return pages(node_documents, nodes), pages(running_pods(pods, nodes), pods)


def _read_into_dicts(all_pages: Iterator[bytes], kept: dict[str, object]) -> list[float]:
    busy = []
    for page in all_pages:
        began = time.perf_counter()
        for item in json.loads(page)["items"]:
            kept[item["metadata"]["name"]] = item
        busy.append(time.perf_counter() - began)
    return busy


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=(RESERVER, DICTS))
    parser.add_argument("nodes", type=int)
    parser.add_argument("pods", type=int)
    args = parser.parse_args()
    logs.configure(LogLevel.WARNING)
    found = uvloop.run(_start(args.kind, args.nodes, args.pods))
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    _main()
