"""`python -m hack.bench.throughput.cycle` divides the time of a Filter call.

kube-scheduler alone, with an extender that decides nothing, and with Reserver take turns in one
run. The wire shows the times of a call and its answer, kube-scheduler's metrics the time of its
algorithm, Reserver's metrics the time of its decision. Needs the right to open packet sockets.
"""

from __future__ import annotations

import argparse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from hack.bench.report import table, write
from hack.bench.throughput.turn import EXTENDER, Cluster, Rounds, Turn, measuring
from hack.bench.throughput.variants import VARIANTS, Extender, Variant
from hack.bench.throughput.wire import Call, captured, filter_calls
from hack.reserver_process import metrics

_STOCK, _LEAST, _RESERVER = "stock", "least", "reserver"
_LULL_S = 0.001
_DECIDED = 'reserver_extender_call_seconds_%s{verb="filter"}'


@dataclass(frozen=True)
class Seen:
    """The result of a turn.

    Attributes:
        turn: rate and CPU times.
        calls: Filter calls on the wire.
        decided_ms: mean milliseconds from reading a call in Reserver to its answer.
    """

    turn: Turn
    calls: Sequence[Call] = ()
    decided_ms: float = 0

    def __str__(self) -> str:
        """Return the rate."""
        return str(self.turn)

    @property
    def sent_ms(self) -> float:
        """From the first segment of a request to its last, in milliseconds."""
        return mean(call.last - call.first for call in self.calls) * 1e3 if self.calls else 0

    @property
    def answered_ms(self) -> float:
        """From a request's last segment to the answer, in milliseconds."""
        return _answered_ms(self.calls)

    @property
    def alone_ms(self) -> float:
        """The same for calls during which the extender had no other work."""
        return _answered_ms([call for call in self.calls if call.is_alone])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench.throughput.cycle")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=2_000, help="in a turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md as well")
    options = parser.parse_args()
    names = (_STOCK, _LEAST, _RESERVER)
    rounds = Rounds(options.nodes, options.pods, options.rounds)
    with measuring():
        seen = rounds.run(names, _measured)
    header = ("a Filter call, in milliseconds", *(VARIANTS[name].title for name in names[1:]))
    shown = table(f"{options.nodes:,} nodes: where the time goes", header, [*_rows(seen)])
    text = f"{shown}\n{rounds}, means within a turn.\n"
    print(text)
    if options.write:
        write("bench-cycle", text)


def _measured(cluster: Cluster, variant: Variant) -> Seen:
    """Run a turn of a variant, and capture the wire meanwhile."""
    if variant.run is None:
        return Seen(cluster.turn(variant))
    run = variant.run
    calls: list[Call] = []
    decided = [0.0]

    @contextmanager
    def watched(kubeconfig: Path, folder: Path) -> Iterator[Extender]:
        with run(kubeconfig, folder) as extender:
            with captured(extender.port, extender.pid) as packets:
                yield extender
            # As in kube-scheduler's metrics: without the warm-up calls.
            calls.extend([*filter_calls(packets, extender.port, _LULL_S)][-cluster.pods :])
            if variant.title == VARIANTS[_RESERVER].title:
                decided[0] = _decided_ms(extender.port)

    turn = cluster.turn(variant._replace(run=watched))
    return Seen(turn, calls, decided[0])


def _decided_ms(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        values = metrics(response.read().decode())
    return values[_DECIDED % "sum"] * 1e3 / values[_DECIDED % "count"]


def _rows(seen: dict[str, list[Seen]]) -> Iterator[tuple[str, ...]]:
    """Yield the time of each part, for the extender that decides nothing and for Reserver."""

    def row(title: str, value: Callable[[Seen, Seen], float], digits: int = 2) -> tuple[str, ...]:
        least, ours = (
            median(value(*both) for both in zip(seen[name], seen[_STOCK], strict=True))
            for name in (_LEAST, _RESERVER)
        )
        # The other turn may be the busier one: then the difference has no meaning.
        shown = (f"{each:.{digits}f}" if each > 0 else "n/a" for each in (least, ours))
        return title, *shown

    yield row("pods/s, of kube-scheduler alone", lambda own, alone: own.turn.rate / alone.turn.rate)
    yield row("added to kube-scheduler's algorithm", _added_ms)
    yield row("the request is written", lambda own, _: own.sent_ms)
    yield row("until the answer, beside nothing else", lambda own, _: own.alone_ms)
    yield row("of this: decoding, deciding, encoding", lambda own, _: own.decided_ms)
    yield row(
        "waiting behind other calls and events", lambda own, _: own.answered_ms - own.alone_ms
    )
    yield row(
        "kube-scheduler: encoding, waking up, decoding",
        lambda own, alone: _added_ms(own, alone) - own.sent_ms - own.answered_ms,
    )
    yield row("CPU of the extender for a pod", lambda own, _: own.turn.cpu_ms(EXTENDER))
    yield row("calls beside nothing else", lambda own, _: _alone(own.calls), 0)


def _added_ms(own: Seen, alone: Seen) -> float:
    return own.turn.algorithm_ms - alone.turn.algorithm_ms


def _answered_ms(calls: Sequence[Call]) -> float:
    return mean(call.answered - call.last for call in calls) * 1e3 if calls else float("nan")


def _alone(calls: Sequence[Call]) -> int:
    return sum(call.is_alone for call in calls)


if __name__ == "__main__":
    main()
