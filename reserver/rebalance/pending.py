"""Pods without a node in a round: which get room, and what is held for them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from reserver.cluster.pod import Pod, PodName
from reserver.rebalance import sound
from reserver.rebalance.deciding import Decision, Look
from reserver.rebalance.inventory import Inventory, ListedPod
from reserver.rebalance.makeroom import MAKE_ROOM, make_room
from reserver.rebalance.plan import Move, Plan
from reserver.rebalance.policy import Policy, Profile
from reserver.rebalance.scene import Held, scene_of


def waiting(inventory: Inventory) -> list[Pod]:
    """Return the pods that wait for a node."""
    return [each.pod for each in inventory.pods if is_waiting(each)]


def is_waiting(listed: ListedPod) -> bool:
    """Return whether a pod waits for a node; one with scheduling gates waits for its owner."""
    pod = listed.pod
    is_gated = any(
        (each.type, each.reason) == ("PodScheduled", "SchedulingGated")
        for each in listed.conditions
    )
    return not (pod.node or pod.finished or pod.terminating or is_gated)


def without(inventory: Inventory, pods: Container[PodName]) -> Inventory:
    """Return an inventory without those of some pods that wait: room is made for them already."""
    kept = (each for each in inventory.pods if each.name not in pods or not is_waiting(each))
    return replace(inventory, pods=tuple(kept))


def profile_of(policy: Policy) -> Profile:
    """Return the profile whose evictor says which pods may make room."""
    return (*policy.profiles, Profile(name=""))[0]


def plan(
    look: Look, held: Held, wanted: Sequence[Pod], *, together: bool = False, seconds: float = 0.0
) -> Plan:
    """Return the plan that makes room for pods, as `make_room` does.

    Args:
        look: the cluster; of the policy, its limits and the evictor of the first profile count.
        held: what reservations hold.
        wanted: pods without a node.
        together: all of them get room, or none does.
        seconds: how long a solver may look for fewer moves; 0 for not at all.
    """
    protects = sound.protection(look, profile_of(look.policy))
    limits = look.policy.limits
    scene = scene_of(look.inventory, protects, held=held, wanted=wanted, limits=limits)
    return make_room(scene, together=together, seconds=seconds)


def decide(look: Look, held: Held) -> Decision:
    """Return a plan whose moves make room for pending pods, and those that get it before them.

    A pod that fits as it is needs no room, unless it is to share what others leave.
    """
    wanted = waiting(look.inventory)
    found = plan(look, held, wanted)
    rooms = _rooms(found, {pod.name: pod for pod in wanted})
    return Decision(plan=replace(found, moves=(*rooms, *found.moves)), rounds=look.rounds)


def _rooms(plan: Plan, pods: dict[PodName, Pod]) -> list[Move]:
    """Return the landings on nodes that others leave, as moves of pods that leave no node."""
    left = {move.source for move in plan.moves}
    return [
        Move(
            pod=pod,
            uid=pods[pod].uid,
            source="",
            target=node,
            strategy=MAKE_ROOM,
            reason=f"others leave {node} for it",
            improves=f"{pod} gets a node",
        )
        for pod, node in plan.landings
        if node in left
    ]
