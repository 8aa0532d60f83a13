"""Room for pending pods, as rounds make it."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from reserver.cluster.pod import PodName
from reserver.rebalance.cluster_state import ClusterState, ListedCondition, ListedPod
from reserver.rebalance.pending import decide, waiting, without
from reserver.rebalance.plan import Plan
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.round_input import RoundInput
from tests.unit.rebalance.build import cluster_of, node, pod


def cluster(*pods: ListedPod) -> ClusterState:
    return replace(cluster_of(node("d"), node("e")), pods=pods)


def planned(found: ClusterState) -> Plan:
    return decide(
        RoundInput(policy=DeschedulerPolicy(), cluster=found, loads={}, rounds={}, now=0.0), {}
    ).plan


def listed(name: str, on: str, cpu: str) -> ListedPod:
    (found,) = cluster_of(pod(name, on, requests={"cpu": cpu})).pods
    return found


A, B = listed("a", "d", "2"), listed("b", "e", "2")
BIG = listed("big", "", "4")


def test_room_is_held_for_the_pending_pod_before_another_one_leaves_it() -> None:
    room, leaves = planned(cluster(A, B, BIG)).moves
    assert (room.pod, room.uid, room.source) == (BIG.name, BIG.pod.uid, "")
    assert (room.target, leaves.target) == (leaves.source, ({"d", "e"} - {room.target}).pop())


def test_for_a_pod_that_fits_as_it_is_nothing_is_held() -> None:
    assert planned(cluster(A, BIG)).moves == ()


def test_a_pod_with_scheduling_gates_does_not_wait_for_a_node() -> None:
    gated = msgspec.structs.replace(
        BIG, conditions=(ListedCondition("PodScheduled", "False", "SchedulingGated"),)
    )
    refused = msgspec.structs.replace(
        BIG, conditions=(ListedCondition("PodScheduled", "False", "Unschedulable"),)
    )
    assert waiting(cluster(A, gated)) == []
    assert waiting(cluster(A, refused)) == [BIG.pod]


def test_a_pod_for_which_room_is_held_already_is_not_asked_about_again() -> None:
    found = without(cluster(A, B, BIG), {BIG.name, A.name})
    assert found.pods == (A, B)
    assert without(found, {PodName("shop", "other")}) == found
