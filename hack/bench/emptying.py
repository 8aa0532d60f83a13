"""Emptying nodes: their number, moves and time; `make optimum` computes the optimum."""

import random
import time
from collections.abc import Iterator

from hack.bench.report import milliseconds, progress, table
from hack.bench.scale import Scale
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.rebalance.cluster_state import ClusterState, ListedNode, ListedPod
from reserver.rebalance.defragment import defragment
from reserver.rebalance.planning_snapshot import PlanningSnapshot, planning_snapshot

_SHAPES = ((4_000, 16 << 30), (8_000, 32 << 30), (16_000, 64 << 30))
_SHARES = (0.02, 0.05, 0.05, 0.1, 0.1, 0.15, 0.25)
_FULL = (0.85, 0.88, 0.9, 0.92, 0.95)


def measure(scale: Scale) -> Iterator[str]:
    """Yield the tables of emptying nodes."""
    progress("emptying nodes")
    header = ("nodes, how full", "pods", "emptied", "at most", "moves", "time")
    sizes = (30, min(scale.nodes, 1_000))
    rows = [_row(nodes, seed) for nodes in sizes for seed in range(len(_FULL))]
    yield table("Emptying nodes: random pods, nodes of one or three sizes", header, rows)


def _row(nodes: int, seed: int) -> tuple[str, ...]:
    scene = _cluster(nodes, seed)
    began = time.perf_counter()
    plan = defragment(scene)
    took = time.perf_counter() - began
    full = f"{nodes:,}, about {_FULL[seed % len(_FULL)]:.0%}"
    counts = (len(plan.emptied), plan.bound.most_nodes, len(plan.moves))
    return full, str(len(scene.pods)), *map(str, counts), milliseconds(took)


def _cluster(nodes: int, seed: int) -> PlanningSnapshot:
    """Return a cluster of nodes with random fullness around a value of `_FULL`."""
    drawn = random.Random(seed)  # noqa: S311 - the same cluster for each seed
    shapes = drawn.choice(((drawn.choice(_SHAPES),), _SHAPES))
    listed: dict[str, ListedNode] = {}
    pods: list[ListedPod] = []
    for number in range(nodes):
        name = f"n{number:04}"
        cpu, memory = drawn.choice(shapes)
        offered = {"cpu": cpu, "memory": memory, "pods": 110}
        listed[name] = ListedNode(node=Node(name=name, allocatable=offered))
        share = min(1.0, _FULL[seed % len(_FULL)] + drawn.uniform(-0.12, 0.12))
        pods += _pods(name, int(cpu * share), memory, cpu, drawn)
    inventory = ClusterState(nodes=listed, pods=tuple(sorted(pods, key=lambda each: each.name)))
    return planning_snapshot(inventory, lambda _: "")


def _pods(
    node: str, cpu: int, memory: int, whole: int, drawn: random.Random
) -> Iterator[ListedPod]:
    """Yield random pods until a node has its share of requests."""
    misses = 0
    while misses < len(_SHARES):
        share = drawn.choice(_SHARES)
        asked = int(whole * share)
        takes = int(memory * share * drawn.uniform(0.5, 1.4))
        if asked > cpu or takes > memory:
            misses += 1
            continue
        cpu, memory = cpu - asked, memory - takes
        name = PodName("bench", f"{node}-{cpu}")
        requests = {"cpu": asked, "memory": takes, "pods": 1}
        yield ListedPod(pod=Pod(name=name, uid=f"uid-{name}", requests=requests, node=node))
