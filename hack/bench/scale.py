"""The extent of the benchmarks: full, or small as a smoke test."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The extent of the benchmarks.

    Attributes:
        nodes: nodes of the cluster for decisions.
        pods: running pods of that cluster.
        samples: numbers of names in a Filter call.
        reservations: numbers of active reservations, spread evenly: the third covers a tenth of the
            nodes, the fourth nine tenths; with the last two every node has two or more.
        rounds: turns of each alternative.
        calls: calls of each alternative in a turn.
        starts: measured starts.
        started_pods: pods that a start reads, on the same number of nodes.
        entries: entries of a large store ConfigMap.
    """

    nodes: int
    pods: int
    samples: tuple[int, ...]
    reservations: tuple[int, ...]
    rounds: int
    calls: int
    starts: int
    started_pods: int
    entries: int


FULL = Scale(
    nodes=5_000,
    pods=50_000,
    samples=(100, 500, 1_000, 5_000),
    reservations=(0, 50, 500, 4_500, 10_000, 100_000),
    rounds=11,
    calls=150,
    starts=3,
    started_pods=150_000,
    entries=10_000,
)

QUICK = Scale(
    nodes=500,
    pods=5_000,
    samples=(100, 500),
    reservations=(0, 5, 50, 450, 1_000, 5_000),
    rounds=3,
    calls=10,
    starts=1,
    started_pods=2_000,
    entries=500,
)
