"""Small clusters for plans."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reserver.cluster.budgets import Budget
from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance.capacity import NOTHING_HELD, Held, snapshot_of
from reserver.rebalance.cluster_state import ClusterState, ListedNode, ListedPod
from reserver.rebalance.plan import Plan
from reserver.rebalance.planning_snapshot import PlanningSnapshot, planning_snapshot
from reserver.rebalance.policy import NO_LIMITS, EvictionLimits
from reserver.scheduling.fit import fit
from tests.builders import name

Protects = Callable[[ListedPod], str]


def list_of(*things: Node | Pod) -> list[Node | Pod]:
    return list(things)


def unprotected(_: ListedPod) -> str:
    return ""


def cluster_of(*things: Node | Pod, budgets: Iterable[Budget] = ()) -> ClusterState:
    nodes = {each.name: ListedNode(node=each) for each in things if isinstance(each, Node)}
    pods = sorted((each for each in things if isinstance(each, Pod)), key=lambda pod: pod.name)
    return ClusterState(
        nodes=nodes, pods=tuple(ListedPod(pod=pod) for pod in pods), budgets=tuple(budgets)
    )


def budget(budget_name: str, allowed: int, **labels: str) -> Budget:
    return Budget(name=name(budget_name), selector=equals(labels), allowed=allowed)


def scene(
    *things: Node | Pod,
    wanted: Sequence[Pod] = (),
    held: Held = NOTHING_HELD,
    budgets: Iterable[Budget] = (),
    protects: Protects = unprotected,
    limits: EvictionLimits = NO_LIMITS,
) -> PlanningSnapshot:
    found = cluster_of(*things, budgets=budgets)
    return planning_snapshot(found, protects, held=held, wanted=wanted, limits=limits)


def moves(plan: Plan) -> list[tuple[str, str, str | None]]:
    return [(move.pod.name, move.source, move.target) for move in plan.moves]


def assert_feasible(plan: Plan, *things: Node | Pod, wanted: Sequence[Pod] = ()) -> None:
    """Carry a plan out and assert that each pod fits on its new node when its turn comes."""
    snapshot = snapshot_of(cluster_of(*things))
    pods: Mapping[object, Pod] = {
        each.name: each for each in (*things, *wanted) if isinstance(each, Pod)
    }
    for move in plan.moves:
        pod = pods[move.pod]
        placed = snapshot.counted(pod.uid)
        assert placed is not None
        assert placed.node == move.source
        assert move.target is not None
        snapshot.uncount(pod.uid)
        assert fit(pod, move.target, snapshot) == ()
        snapshot.count(pod, move.target)
    for landing in plan.landings:
        pod = pods[landing.pod]
        assert fit(pod, landing.node, snapshot) == ()
        snapshot.count(pod, landing.node)
