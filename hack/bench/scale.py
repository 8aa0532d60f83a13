"""How much is measured: all of it, or a glimpse that shows that the benchmark works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured.

    Attributes:
        nodes: of the cluster that calls are decided on.
        pods: that run there.
        samples: how many names a Filter call has.
        reservations: how many are in force, spread evenly: the third gives a tenth of the nodes
            one, the fourth nine tenths; from the last but one on every node has two or more.
        rounds: how often alternatives take turns.
        calls: of each alternative in its turn.
        starts: how often a start is measured.
        started_pods: pods that a start has to read, on as many nodes as above.
        entries: of a large store ConfigMap.
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
