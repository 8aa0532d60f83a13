"""Turns the moves on a planning snapshot into a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping

from reserver.cluster.headroom import clamped
from reserver.rebalance.capacity import amounts_of, requested_by_node, takes_room
from reserver.rebalance.cluster_state import Amounts, ClusterState
from reserver.rebalance.ordering import Order
from reserver.rebalance.plan import MOST_KEPT, NO_BOUND, Bound, Kept, Landing, NodeUse, Plan, Why
from reserver.rebalance.planning_snapshot import NOWHERE, PlanningSnapshot


def plan_of(
    planned: PlanningSnapshot,
    order: Order,
    why: Callable[[int, int], Why],
    *,
    kept: Iterable[Kept] = (),
    emptied: Iterable[int] = (),
    bound: Bound = NO_BOUND,
) -> Plan:
    """Return the moves on a planning snapshot as a plan.

    Args:
        planned: the snapshot after all moves.
        order: the moves in order.
        why: returns the reason why a pod leaves a row.
        kept: candidates that stay.
        emptied: rows of the emptied nodes.
        bound: a bound on better plans.
    """
    name_of = planned.snapshot.name_of
    moves, landings = [], []
    for number, source, target in order.steps:
        pod = planned.pods[number]
        if source == NOWHERE:
            landings.append(Landing(pod.name, name_of(target)))
            continue
        moves.append(why(number, source).move(pod, name_of(source), name_of(target)))
    stays = list(kept)
    return Plan(
        moves=tuple(moves),
        kept=tuple(stays[:MOST_KEPT]),
        more_kept=max(0, len(stays) - MOST_KEPT),
        landings=tuple(landings),
        emptied=tuple(sorted(map(name_of, emptied))),
        nodes=node_uses(planned),
        bound=bound,
    )


def node_uses(planned: PlanningSnapshot) -> tuple[NodeUse, ...]:
    """Return the requests on each node, before and after the moves."""
    snapshot, before = planned.snapshot, planned.before
    after = requested_by_node(snapshot)
    return tuple(
        NodeUse(
            node=name,
            allocatable=amounts_of(snapshot, snapshot.allocatable[row]),
            held=amounts_of(snapshot, snapshot.held[row]),
            before=before[name],
            after=after[name],
        )
        for name in sorted(after)
        if (row := snapshot.row(name)) is not None
    )


def nodes_without(cluster: ClusterState, uids: Container[str]) -> tuple[NodeUse, ...]:
    """Return the requests on each node, before and after some pods are evicted."""
    before: dict[str, Counter[str]] = {name: Counter() for name in sorted(cluster.nodes)}
    leaving: dict[str, Counter[str]] = {name: Counter() for name in before}
    for each in cluster.pods:
        if each.node in before and takes_room(each.pod):
            before[each.node].update(each.pod.requests)
            if each.pod.uid in uids:
                leaving[each.node].update(each.pod.requests)
    offered = {name for node in cluster.nodes.values() for name in node.node.allocatable}

    def shown(amounts: Mapping[str, int]) -> Amounts:
        return {name: clamped(n) for name, n in amounts.items() if n and name in offered}

    return tuple(
        NodeUse(
            node=name,
            allocatable=shown(cluster.nodes[name].node.allocatable),
            held={},
            before=shown(amounts),
            after=shown({key: n - leaving[name][key] for key, n in amounts.items()}),
        )
        for name, amounts in before.items()
    )
