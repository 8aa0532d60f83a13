"""Filter calls over HTTP, from a client in another process, next to the floor."""

import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from hack.bench.client import Client, filter_request, ready_get
from hack.bench.documents import encode, new_pod
from hack.bench.report import kilobytes, microseconds, progress, table, times
from hack.bench.rounds import P50, P99, Timings, side_by_side
from hack.bench.scale import Scale
from hack.bench.server import BARE, BUSY, CHANGE, FLOOR, RESERVER, serving
from hack.bench.throughput.variants import plain_extender
from hack.bench.world import (
    REFUSED_REQUESTS,
    SAMPLED,
    Size,
    node_names,
    owner_name,
    seat_of,
)
from hack.controlplane.build import BuildError
from hack.go_tool import PLAIN_EXTENDER
from reserver.scheduling.filter import ANSWER_LIMIT

_FLOOR, _BARE, _GO, _BUSY = "floor", "bare", "go", "busy"
_USUAL_SAMPLE = 500
"""Names that kube-scheduler sends of 5,000 nodes with its default sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A kind of pod, and the names of its call.

    Attributes:
        title: its name in the table.
        pod: the pod as JSON.
        names: the nodes in the call.
        passed: number of nodes in a correct answer for this kind of pod.
        least: fewest reservations for this kind of pod.
    """

    title: str
    pod: Mapping[str, object]
    names: list[str]
    passed: int
    least: int = 0


class UnexpectedAnswerError(Exception):
    """An answer is not the one to be measured."""


class _Servers:
    """Clients of running servers: Reserver with growing numbers of reservations, and the floor.

    Client and servers share one processor, as only one of them is busy at any time. On several
    processors the kernel would move them together and apart, at half a call's cost.
    """

    def __init__(self, scale: Scale, stack: ExitStack) -> None:
        sizes = [
            Size(nodes=scale.nodes, pods=scale.pods, reservations=count)
            for count in scale.reservations
        ]
        started = [stack.enter_context(serving(RESERVER, size)) for size in sizes]
        floor = stack.enter_context(serving(FLOOR))
        bare = stack.enter_context(serving(BARE))
        size = Size(nodes=scale.nodes, pods=scale.pods, reservations=scale.reservations[2])
        busy = stack.enter_context(serving(BUSY, size))
        everywhere = os.sched_getaffinity(0)
        one = {max(everywhere)}
        self._floor = stack.enter_context(Client(floor.port(one)))
        self._bare = stack.enter_context(Client(bare.port(one)))
        self._busy = stack.enter_context(Client(busy.port(one)))
        self._clients = {
            size.reservations: stack.enter_context(Client(server.port(one)))
            for size, server in zip(sizes, started, strict=True)
        }
        os.sched_setaffinity(0, one)
        stack.callback(os.sched_setaffinity, 0, everywhere)
        self._go = _go_extender(stack)  # It inherits the processor.

    def alternatives(self, case: _Case, counts: tuple[int, ...]) -> dict[str, Callable[[], object]]:
        """Return the call to each server, after a check of its answer."""
        ready = filter_request("/filter", case.pod, case.names)
        calls: dict[str, Callable[[], object]] = {}
        size = 0
        for count in counts:
            answer = self._clients[count].call(ready)
            passed = len(msgspec.json.decode(answer)["NodeNames"])
            if passed != case.passed:
                problem = f"{case.title}: {passed} nodes passed, not {case.passed}"
                raise UnexpectedAnswerError(problem)
            calls[str(count)] = partial(self._clients[count].call, ready)
            size = len(answer)
        empty = filter_request(f"/floor/{size}", case.pod, case.names)
        calls |= {_FLOOR: partial(self._floor.call, empty), _BARE: partial(self._bare.call, empty)}
        calls[_BUSY] = partial(self._busy.call, ready)
        return calls | ({_GO: partial(self._go.call, ready)} if self._go else {})

    def changes(self) -> dict[str, Callable[[], object]]:
        """Return, for each Reserver, a call that changes a node."""
        ready = ready_get(CHANGE)
        return {str(count): partial(at.call, ready) for count, at in self._clients.items()}


def _go_extender(stack: ExitStack) -> Client | None:
    """Return a client of a typical extender in Go; None if it cannot be built."""
    try:
        PLAIN_EXTENDER.build()
    except BuildError:
        return None
    folder = Path(stack.enter_context(TemporaryDirectory()))
    kubeconfig = folder / "kubeconfig"
    cluster = {"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "none", "context": {"cluster": "none", "user": ""}}
    document = {"clusters": [cluster], "contexts": [context], "current-context": "none"}
    kubeconfig.write_bytes(encode(document))
    extender = stack.enter_context(plain_extender(ANSWER_LIMIT)(kubeconfig, folder))
    return stack.enter_context(Client(extender.port))


def measure(scale: Scale) -> Iterator[str]:
    """Yield the tables of Filter calls: by names, by special cases, and by reservations."""
    progress("building clusters")
    with ExitStack() as stack:
        servers = _Servers(scale, stack)
        yield _by_names(scale, servers)
        yield _special(scale, servers)
        yield _by_reservations(scale, servers)


def _by_names(scale: Scale, servers: _Servers) -> str:
    count = scale.reservations[2]
    rows = []
    for sample in scale.samples:
        progress(f"Filter calls with {sample:,} names")
        names = node_names(scale.nodes, order=SAMPLED)[:sample]
        case = _Case(
            title="owns none", pod=new_pod("web-1"), names=names, passed=min(sample, ANSWER_LIMIT)
        )
        calls = servers.alternatives(case, (count,))
        taken = side_by_side(calls, rounds=scale.rounds, calls=scale.calls)
        own = taken[str(count)]
        sent = len(encode({"Pod": case.pod, "NodeNames": names}))
        rows.append((f"{sample:,}", kilobytes(sent), *_compared(own, taken)))
    title = f"One Filter call: {scale.nodes:,} nodes, {scale.pods:,} pods, {count:,} reservations"
    return table(title, ("names", "sent", *_COMPARED), rows)


_COMPARED = ("p50", "p99", "floor", "its p99", "ratio", "bare", "ratio", "Go extender", "ratio")


def _compared(own: Timings, taken: Mapping[str, Timings]) -> Iterator[str]:
    floor = taken[_FLOOR]
    yield from (microseconds(own.seconds()), _tail(own), microseconds(floor.seconds()))
    yield from (_tail(floor), times(own.ratio_to(floor)))
    for name in (_BARE, _GO):
        other = taken.get(name)
        yield microseconds(other.seconds()) if other else "n/a"
        yield times(own.ratio_to(other)) if other else "n/a"


def _tail(taken: Timings) -> str:
    """Return the ratio of p99 to p50, as the median over the turns."""
    pairs = zip(taken.each_round(P99), taken.each_round(P50), strict=True)
    return times(statistics.median(p99 / p50 for p99, p50 in pairs))


def _special(scale: Scale, servers: _Servers) -> str:
    """Return the table of special calls and moments, with the usual number of names."""
    names = node_names(scale.nodes, order=SAMPLED)[:_USUAL_SAMPLE]
    usual, large = new_pod("web-1"), new_pod("web-1")
    large["metadata"]["annotations"] = {"example.com/notes": "n" * 60_000}
    refused = new_pod("large-1", REFUSED_REQUESTS)
    some, most, all_held = scale.reservations[2:5]
    cases = (
        ("usual", usual, ANSWER_LIMIT, some, str(some)),
        ("a pod of 60 kB", large, ANSWER_LIMIT, some, str(some)),
        ("while 500 pods a second change", usual, ANSWER_LIMIT, some, _BUSY),
        ("90 % of the nodes have holds", usual, ANSWER_LIMIT, most, str(most)),
        ("all nodes have holds", usual, ANSWER_LIMIT, all_held, str(all_held)),
        ("all are refused", refused, 0, all_held, str(all_held)),
    )
    rows = []
    for title, pod, passed, count, which in cases:
        progress(f"Filter calls: {title}")
        case = _Case(title=title, pod=pod, names=names, passed=passed)
        calls = servers.alternatives(case, (count,))
        taken = side_by_side(calls, rounds=scale.rounds, calls=scale.calls)
        rows.append((title, *_compared(taken[which], taken)))
    return table(f"One Filter call with {_USUAL_SAMPLE} names", ("call", *_COMPARED), rows)


def _by_reservations(scale: Scale, servers: _Servers) -> str:
    rows = []
    for case in _cases(scale):
        progress(f"Filter calls by reservations: {case.title}")
        counts = tuple(count for count in scale.reservations if count >= case.least)
        calls = servers.alternatives(case, counts)
        taken = side_by_side(
            calls, rounds=scale.rounds, calls=max(scale.calls // 4, 1), before=servers.changes()
        )
        first = taken[str(counts[0])]
        cells = [
            f"{microseconds(own.seconds())} ({times(own.ratio_to(first))})"
            if (own := taken.get(str(count)))
            else "n/a"
            for count in scale.reservations
        ]
        rows.append((case.title, *cells, microseconds(taken[_FLOOR].seconds())))
    header = ("pod", *(f"{count:,}" for count in scale.reservations), "floor")
    return table("One Filter call, p50, by reservations in force", header, rows)


def _cases(scale: Scale) -> Iterator[_Case]:
    names = node_names(scale.nodes, order=SAMPLED)
    seat = seat_of(0, scale.nodes)
    without_seat = [name for name in names if name != seat]
    refused = new_pod("large-1", REFUSED_REQUESTS)
    owner = new_pod(owner_name(0))
    every = 2 * scale.nodes
    few, usual = names[:_USUAL_SAMPLE], new_pod("web-1")
    for asked in (few, names):
        title = f"owns none, {len(asked):,} names"
        yield _Case(title=title, pod=usual, names=asked, passed=ANSWER_LIMIT)
    yield _Case(title="owner, its seat among the names", pod=owner, names=names, passed=1, least=1)
    yield _Case(title="owner, its seat not there", pod=owner, names=without_seat, passed=0, least=1)
    yield _Case(title="refused everywhere", pod=refused, names=names, passed=0, least=every)
    yield _Case(
        title=f"refused on all of {len(few)} names",
        pod=refused,
        names=few,
        passed=0,
        least=every,
    )
