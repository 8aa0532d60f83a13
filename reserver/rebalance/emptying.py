"""Empties nodes round by round: a round finishes begun nodes before it begins others.

A round cordons a node before the first pod leaves, so that no new pod lands there, and an
annotation marks the cordon as Reserver's (docs/adr/0088). A round moves the pods of whole nodes:
few nodes are cordoned at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from reserver.cluster.pod import PodName
from reserver.rebalance import pending, planner
from reserver.rebalance.capacity import Held, takes_room
from reserver.rebalance.cluster_state import ClusterState, ListedNode, ListedPod
from reserver.rebalance.defragment import defragment
from reserver.rebalance.move_batch import Moving
from reserver.rebalance.move_cost import with_costs
from reserver.rebalance.plan import NO_BOUND, Plan, PlannedMove
from reserver.rebalance.planning_snapshot import planning_snapshot
from reserver.rebalance.round_input import Decision, RoundInput
from reserver.rebalance.time_limit import TimeLimit


class Settled(NamedTuple):
    """The nodes whose emptying has ended.

    Attributes:
        emptied: only daemon pods are left there, and no reservation holds room.
        given_back: the nodes cannot be emptied now, or their cordon was lifted.
    """

    emptied: tuple[str, ...] = ()
    given_back: tuple[str, ...] = ()


NOTHING_SETTLED = Settled()


def decide(given: RoundInput, held: Held, limit: TimeLimit | None = None) -> Decision:
    """Return the plan that finishes begun nodes and empties further nodes."""
    found = with_costs(plan(given, held, limit=limit), given.cluster, given.now)
    return Decision(plan=found, rounds=given.rounds)


def plan(given: RoundInput, held: Held, *, limit: TimeLimit | None = None) -> Plan:
    """Return the plan that empties the most nodes, begun nodes first.

    The plan leaves out nodes that the policy's nodeSelector does not match, and nodes with a cordon
    that is not Reserver's.

    Args:
        given: the cluster; of the policy, its limits and the evictor of the first profile count.
        held: resources that reservations hold, by node.
        limit: of the search for a better plan; None for a search by steps alone.
    """
    protects = planner.protection(given, pending.profile_of(given.policy))
    limits = given.policy.limits
    planned = planning_snapshot(given.cluster, protects, held=held, limits=limits, now=given.now)
    nodes = given.cluster.nodes
    offered = frozenset(name for name, node in nodes.items() if _may_empty(given, node))
    begun = frozenset(name for name in offered if nodes[name].is_being_emptied)
    if not begun:
        return defragment(planned, limit=limit, chosen=offered)
    first = defragment(planned, chosen=begun)
    rest = defragment(planned, limit=limit, chosen=offered - begun)
    return replace(
        rest,
        moves=_joined(first.moves, rest.moves),
        kept=first.kept + rest.kept,
        more_kept=first.more_kept + rest.more_kept,
        emptied=tuple(sorted(first.emptied + rest.emptied)),
        bound=NO_BOUND,
    )


def whole_nodes(
    plan: Plan, begun: Container[str], resting: Moving, most: int
) -> tuple[PlannedMove, ...]:
    """Return the moves that empty whole nodes, in their order: begun ones, then the cheapest.

    Args:
        plan: all that could be moved.
        begun: the nodes that are being emptied.
        resting: pods that are left alone: their nodes cannot be emptied now.
        most: so many moves at most, unless one node alone takes more.
    """
    moves = plan.moves
    needs = _needs(moves)
    needed = {node: needs(node) for node in plan.emptied}
    stay = {
        number
        for number, move in enumerate(moves)
        if not resting.isdisjoint({(move.pod, move.uid), (move.pod, "")})
    }
    taken = set[int]()
    costs = {node: sum(moves[number].cost for number in needed[node]) for node in needed}
    for node in sorted(needed, key=lambda node: (node not in begun, costs[node], node)):
        further = needed[node] - taken
        if further.isdisjoint(stay) and (not taken or len(taken) + len(further) <= most):
            taken |= further
    return tuple(moves[number] for number in sorted(taken))


def settled(cluster: ClusterState, held: Held, leaving: AbstractSet[str]) -> Settled:
    """Return the nodes whose emptying has ended.

    Args:
        cluster: as it is now.
        held: resources that reservations hold, by node.
        leaving: the nodes that pods are leaving.
    """
    emptied, given_back = [], []
    for name, node in sorted(cluster.nodes.items()):
        if not node.is_marked or node.node.maintenance:
            continue  # A MaintenanceWindow that has the node relies on its cordon.
        staying = list(_staying(cluster.by_node.get(name, ())))
        if not staying and not held.get(name):
            emptied.append(name)
            continue
        is_ending = bool(staying) and all(each.pod.terminating for each in staying)
        if not (node.is_being_emptied and (name in leaving or is_ending)):
            given_back.append(name)
    return Settled(tuple(emptied), tuple(given_back))


def left_by(cluster: ClusterState, pods: Container[PodName]) -> frozenset[str]:
    """Return the nodes of some pods."""
    return frozenset(each.node for each in cluster.pods if each.node and each.name in pods)


def _joined(first: Sequence[PlannedMove], later: Sequence[PlannedMove]) -> tuple[PlannedMove, ...]:
    """Return two parts of a plan as one, in which a pod goes at once where it is to end.

    It goes when it would go on: its first place is then free for longer, and nobody goes to its
    own node.
    """
    begins = {move.pod: move for move in first}
    goes_on = {move.pod for move in later}
    return (
        *(move for move in first if move.pod not in goes_on),
        *(
            replace(begins[move.pod], target=move.target) if move.pod in begins else move
            for move in later
        ),
    )


def _may_empty(given: RoundInput, node: ListedNode) -> bool:
    is_free = node.is_being_emptied or not (node.node.unschedulable or node.is_marked)
    return is_free and given.policy.node_selector.matches(node.node.labels)


def _staying(pods: Sequence[ListedPod]) -> Iterator[ListedPod]:
    """Yield the pods without which a node is empty."""
    for each in pods:
        stays_behind = each.pod.is_mirror or each.pod.controller.kind == "DaemonSet"
        if takes_room(each.pod) and not stays_behind:
            yield each


def _needs(moves: Sequence[PlannedMove]) -> Callable[[str], set[int]]:
    """Return a function from a node to the moves that empty it or make room for these moves."""
    leaving, last = defaultdict[str, list[int]](list), dict[PodName, int]()
    before = dict[int, int]()
    for number, move in enumerate(moves):
        leaving[move.source].append(number)
        if move.pod in last:
            before[number] = last[move.pod]
        last[move.pod] = number

    def needed(node: str) -> set[int]:
        found, open_ = set[int](), list(leaving[node])
        while open_:
            number = open_.pop()
            if number in found:
                continue
            found.add(number)
            room = leaving.get(moves[number].target or "", ())
            open_ += [each for each in room if each < number]
            if number in before:
                open_.append(before[number])
        return found

    return needed
