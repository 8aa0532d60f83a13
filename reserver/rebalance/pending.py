"""Pods without a node: pending pods, and slots of reservations whose pods do not exist yet."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from reserver.cluster.constraints import Constraints, NodeTerm
from reserver.cluster.labels import EVERYTHING, equals
from reserver.cluster.pod import Pod, PodName
from reserver.rebalance import planner
from reserver.rebalance.capacity import Held
from reserver.rebalance.cluster_state import ClusterState, ListedPod
from reserver.rebalance.makeroom import MAKE_ROOM, make_room
from reserver.rebalance.move_cost import with_costs
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.planning_snapshot import planning_snapshot
from reserver.rebalance.policy import DeschedulerPolicy, Profile
from reserver.rebalance.round_input import Decision, RoundInput
from reserver.rebalance.time_limit import TimeLimit
from reserver.reservations.reservation import Reservation
from reserver.scheduling.placement import slot_pod


class Slots(NamedTuple):
    """The slots of a reservation that nobody has created yet.

    Attributes:
        pod: what each of them counts as, of the reservation's name.
        number: how many there are.
    """

    pod: Pod
    number: int

    @classmethod
    def of(cls, reservation: Reservation, name: str) -> Slots:
        """Return the slots of a reservation that is called `name`."""
        pod = slot_pod(reservation)
        if reservation.node:
            term = NodeTerm(EVERYTHING, equals({"metadata.name": reservation.node}))
            pod = replace(pod, constraints=Constraints(node_terms=(term,)))
        named = replace(pod, name=PodName(pod.name.namespace, name))
        return cls(named, reservation.slots)

    def pods(self) -> Iterator[Pod]:
        """Yield each as a pod without a node: of several the name says which."""
        namespace, name = self.pod.name
        for index in range(self.number):
            home = PodName(namespace, f"{name}#{index}" if self.number > 1 else name)
            yield replace(self.pod, name=home, uid=f"wanted {home}")


def waiting(cluster: ClusterState) -> list[Pod]:
    """Return the pods that wait for a node."""
    return [each.pod for each in cluster.pods if is_waiting(each)]


def is_waiting(listed: ListedPod) -> bool:
    """Return whether a pod waits for a node; one with scheduling gates waits for its owner."""
    pod = listed.pod
    is_gated = any(
        (each.type, each.reason) == ("PodScheduled", "SchedulingGated")
        for each in listed.conditions
    )
    return not (pod.node or pod.finished or pod.terminating or is_gated)


def without(cluster: ClusterState, pods: Container[PodName]) -> ClusterState:
    """Return a cluster without pending pods that room is already being made for."""
    kept = (each for each in cluster.pods if each.name not in pods or not is_waiting(each))
    return replace(cluster, pods=tuple(kept))


def profile_of(policy: DeschedulerPolicy) -> Profile:
    """Return the profile whose evictor says which pods may make room."""
    return (*policy.profiles, Profile(name=""))[0]


def plan(
    given: RoundInput,
    held: Held,
    wanted: Sequence[Pod],
    *,
    together: bool = False,
    limit: TimeLimit | None = None,
) -> Plan:
    """Return the plan that makes room for pods, as `make_room` does.

    Args:
        given: the cluster; of the policy, its limits and the evictor of the first profile count.
        held: what reservations hold.
        wanted: pods without a node.
        together: all of them get room, or none does.
        limit: of the search for a better plan; None for a search by steps alone.
    """
    protects = planner.protection(given, profile_of(given.policy))
    limits = given.policy.limits
    planned = planning_snapshot(
        given.cluster, protects, held=held, wanted=wanted, limits=limits, now=given.now
    )
    return make_room(planned, together=together, limit=limit)


def decide(given: RoundInput, held: Held) -> Decision:
    """Return a plan whose moves make room for pending pods, and the pods that get room earlier.

    A pod that fits without moves is left out, unless it shares room that other pods leave.
    """
    wanted = waiting(given.cluster)
    found = with_costs(plan(given, held, wanted), given.cluster, given.now)
    landings = _landings(found, {pod.name: pod for pod in wanted})
    return Decision(plan=replace(found, moves=(*landings, *found.moves)), rounds=given.rounds)


def _landings(plan: Plan, pods: dict[PodName, Pod]) -> list[PlannedMove]:
    """Return the landings on nodes that others leave, as moves of pods that leave no node."""
    left = {move.source for move in plan.moves}
    return [
        PlannedMove(
            pod=pod,
            uid=pods[pod].uid,
            source="",
            target=node,
            strategy=MAKE_ROOM,
            reason=f"other pods leave {node} for it",
            improves=f"{pod} gets a node",
        )
        for pod, node in plan.landings
        if node in left
    ]
