"""Clusters, and a policy judged on them as one plan."""

from dataclasses import replace

import msgspec

from reserver.cluster.budgets import Budget
from reserver.cluster.constraints import Taint
from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.rebalance.capacity import NOTHING_HELD, Held
from reserver.rebalance.cluster_state import ClusterState, ListedNode, ListedPod, Owner
from reserver.rebalance.plan import Plan
from reserver.rebalance.planner import decide
from reserver.rebalance.policy import Arguments, DeschedulerPolicy, EvictionLimits, Profile
from reserver.rebalance.round_input import RoundInput
from tests.builders import NOW, node
from tests.unit.rebalance.scenes import assert_feasible

HOST = "kubernetes.io/hostname"
NO_LIMITS = EvictionLimits()


def host(name: str, *taints: Taint, **allocatable: str) -> Node:
    labels = {HOST: name}
    labels |= {key: allocatable.pop(key) for key in ("rack", "role") if key in allocatable}
    return node(name, labels=labels, taints=taints, **allocatable)


OWNER = Owner("ReplicaSet", "rs", "rs-uid", is_controller=True)


def listed(each: Pod | ListedPod) -> ListedPod:
    found = each if isinstance(each, ListedPod) else ListedPod(pod=each)
    if found.owners:
        return found
    return msgspec.structs.replace(found, owners=(OWNER,), images=(found.name.name,))


def cluster_of(*things: Node | Pod | ListedPod, budgets: tuple[Budget, ...] = ()) -> ClusterState:
    nodes = [each for each in things if isinstance(each, Node)]
    pods = [listed(each) for each in things if not isinstance(each, Node)]
    return ClusterState(
        nodes={each.name: ListedNode(node=each, taints=each.taints) for each in nodes},
        pods=tuple(sorted(pods, key=lambda each: each.name)),
        budgets=budgets,
    )


def policy(*args: Arguments, limits: EvictionLimits = NO_LIMITS) -> DeschedulerPolicy:
    return DeschedulerPolicy(profiles=(Profile(name="default", balance=args),), limits=limits)


def planned(
    cluster: ClusterState,
    *args: Arguments,
    limits: EvictionLimits = NO_LIMITS,
    held: Held = NOTHING_HELD,
) -> Plan:
    rules = policy(*args, limits=limits)
    given = RoundInput(policy=rules, cluster=cluster, loads={}, rounds={}, now=NOW)
    plan = decide(given, held).plan
    nodes = [each.node for each in cluster.nodes.values()]
    assert_feasible(plan, *nodes, *(each.pod for each in cluster.pods))
    return plan


def after(plan: Plan, cluster: ClusterState) -> ClusterState:
    """Return the cluster after all moves."""
    goes = {move.pod: move.target for move in plan.moves}
    pods = (
        msgspec.structs.replace(each, pod=replace(each.pod, node=goes.get(each.name) or each.node))
        for each in cluster.pods
    )
    return replace(cluster, pods=tuple(pods))


def assert_at_rest(plan: Plan, cluster: ClusterState, *args: Arguments) -> None:
    again = planned(after(plan, cluster), *args)
    assert not {move.pod for move in again.moves} & {move.pod for move in plan.moves}
