"""Clusters with loads, as LowNodeLoad is asked about them."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.rebalance.arguments.load import AnomalyCondition, LowNodeLoad, NodePool
from reserver.rebalance.cluster_state import ListedNode, ListedPod, Owner
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.load_comparison import BalanceInput, BalanceResult
from reserver.rebalance.measured_load import NO_ROUNDS, Rounds
from reserver.rebalance.readings import Average
from reserver.rebalance.strategies.low_node_load import balance

NOW = 10_000.0
CORES = 10_000
AT_ONCE = AnomalyCondition(consecutive_abnormalities=1)
POOL = NodePool(low_thresholds={"cpu": 40}, high_thresholds={"cpu": 80}, anomaly_condition=AT_ONCE)
ARGS = LowNodeLoad(pools=(POOL,))


def node(name: str, *, unschedulable: bool = False, **labels: str) -> ListedNode:
    """Return a node of 10 cores."""
    offered = {"cpu": CORES, "memory": 2**30, "pods": 110}
    return ListedNode(
        node=Node(name=name, allocatable=offered, labels=labels, unschedulable=unschedulable)
    )


def pod(name: str, on: str = "hot", *, priority: int = 0, **labels: str) -> ListedPod:
    """Return a pod of a ReplicaSet."""
    made = Pod(name=PodName("shop", name), uid=f"uid-{name}", node=on, labels=labels)
    return ListedPod(pod=made, priority=priority, owners=(Owner("RS", "rs", "rs"),))


def cores(percent: float) -> dict[str, float]:
    """Return a share of a node's cores, as usage."""
    return {"cpu": percent * CORES / 100}


class World:
    """A cluster with a given load.

    Attributes:
        used: the cpu that each node uses, in percent; a node that is missing has no metrics.
        pods: the pods, each with the cpu that it uses in percent of a node.
        nodes: the nodes, by name.
        rounds: the memory of the latest round.
        moves: each pod that left, its target and the reason.
    """

    def __init__(self, used: dict[str, float], *pods: tuple[ListedPod, float]) -> None:
        self.used = used
        self.pods = pods
        self.nodes = {name: node(name) for name in used}
        self.on_the_way: dict[str, float] = {}
        self.read_at = NOW
        self.rounds = NO_ROUNDS
        self.moves: list[tuple[str, str | None, str]] = []
        self.gains: list[float | None] = []

    def round(  # noqa: PLR0913 - what a round depends on
        self,
        args: LowNodeLoad = ARGS,
        rounds: Rounds = NO_ROUNDS,
        *,
        now: float = NOW,
        fits: Callable[[ListedPod, str], bool] = lambda *_: True,
        may_leave: Callable[[ListedPod], bool] = lambda _: True,
        limit: int = 100,
        least_gain: float = 0.0,
    ) -> BalanceResult:
        def evict(leaving: ListedPod, target: str | None, reason: str, gain: float | None) -> bool:
            if len(self.moves) < limit:
                self.gains.append(gain)
                self.moves.append((leaving.name.name, target, reason))
                return True
            return False

        by_node: dict[str, list[ListedPod]] = {}
        for each, _ in self.pods:
            by_node.setdefault(each.node, []).append(each)
        given = BalanceInput(
            nodes=tuple(self.nodes.values()),
            pods=by_node,
            load=self._load(),
            now=now,
            may_leave=may_leave,
            fits=fits,
            evict=evict,
            least_gain=least_gain,
        )
        found, self.rounds = balance(args, given, rounds)
        return found

    def _load(self) -> SmoothedLoad:
        return SmoothedLoad(
            nodes={
                name: Average(cores(percent), self.read_at, self.read_at, 300.0)
                for name, percent in self.used.items()
            },
            pods={each.name: cores(percent) for each, percent in self.pods},
            on_the_way=self.on_the_way,
        )

    @property
    def moved(self) -> list[str]:
        return [name for name, _, _ in self.moves]


def hot_and_cool() -> World:
    """Return a node at 95 % with four pods of 10 %, and two cool ones."""
    pods = ((pod(f"p{n}"), 10.0) for n in range(4))
    return World({"hot": 95, "cool-1": 30, "cool-2": 10}, *pods)


def pool(**changes: Any) -> LowNodeLoad:
    """Return the arguments with one pool, with changed fields."""
    return replace(ARGS, pools=(replace(POOL, **changes),))
