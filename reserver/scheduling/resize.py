"""Decides whether a running pod may grow on its node: not into room that is held for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reserver.cluster.pod import Pod, PodName
from reserver.cluster.quantity import show, total
from reserver.scheduling.fit import is_exempt
from reserver.scheduling.in_flight import PendingResize
from reserver.scheduling.state import State


class Subject(NamedTuple):
    """The pod of a resize request.

    Attributes:
        name: namespace and name.
        uid: the pod's UID.
        node: the pod's node.
        revision: the resourceVersion onto which the resize will be written.
    """

    name: PodName
    uid: str
    node: str
    revision: int


def seen(subject: Subject, state: State) -> Pod | None:
    """Return the watched pod of a resize; None unless it has the same UID, node and revision."""
    pod = state.pods.get(subject.name)
    if pod is None or pod.finished:
        return None
    is_same = (pod.uid, pod.node, pod.revision) == (subject.uid, subject.node, subject.revision)
    return pod if is_same and pod.node else None


def judge_unseen(subject: Subject, state: State, now: float) -> str | None:
    """Return why a pod whose present version the watch has not shown may not be resized; or None.

    An admitted growth of it would not count, so others might get the same room. On a node without
    holds this takes nothing from any owner.
    """
    state.ledger.advance(now, most=None)
    if subject.node not in state.snapshot.holding:
        return None
    return (
        f"Reserver has not seen pod {subject.name} of node {subject.node} as it is now "
        f"(resourceVersion {subject.revision}), and room is held there; try again in a moment"
    )


def judge_resize(pod: Pod, state: State, now: float) -> str | None:
    """Return why a pod may not grow; None if it may.

    Only resources count that are held, or that will be held again once a pod ends or a binding
    fails: the kubelet defers growth for which the node has no room at all. But on such a node,
    deferred growth would take the held room once other pods have left. Slots that the pod could
    have claimed when it was bound are for other pods.

    Args:
        pod: the watched pod with its coming requests.
        now: unix seconds.
    """
    state.ledger.advance(now, most=None)
    node, snapshot = pod.node, state.snapshot
    more = growth(pod, state)
    if not more or node not in snapshot.holding or is_exempt(pod, snapshot):
        return None
    if node in snapshot.whole_nodes and any(
        seat.is_whole for seat in state.ledger.seats(pod, (node,))
    ):
        return None  # Owners may use all of their whole node.
    if node in snapshot.unreadable_nodes or not snapshot.has_node(node):
        return (
            f"room is held on node {node}, where the node or a pod cannot be read, so nobody knows "
            f"what pod {pod.name} may have beside it; wait until it can be, or the hold ends"
        )
    yielded, held_for_others = yielding(pod, state), _held_for_others(pod, more, state)
    for resource, amount in more.items():
        held = held_for_others[resource] - yielded.get(resource, 0)
        free = state.pending_resizes.free(pod, resource) + yielded.get(resource, 0)
        if held > 0 and amount > free:
            return (
                f"{_holder(pod, resource, state)}: node {node} has {show(resource, max(0, free))} "
                f"of {resource} beside the {show(resource, held)} that are held, and pod "
                f"{pod.name} needs {show(resource, amount)} more; ask for less, or wait until the "
                "hold ends"
            )
    return None


def grow(pod: Pod, state: State) -> PendingResize:
    """Count a pod's growth after `judge_resize` has admitted it; the arguments are the same."""
    return state.grow(pod, yielding(pod, state))


def growth(pod: Pod, state: State) -> Mapping[str, int]:
    """Return the additional amounts of a pod's coming requests."""
    before = state.pods[pod.name].requests
    return {
        resource: amount - before.get(resource, 0)
        for resource, amount in pod.requests.items()
        if amount > before.get(resource, 0)
    }


def yielding(pod: Pod, state: State) -> Mapping[str, int]:
    """Return the amounts of its node's yielding holds that a pod may still take."""
    if is_exempt(pod, state.snapshot):
        return {}
    owed = state.pending_resizes.owed(pod.node, but=pod.uid)
    yielded = state.ledger.yielding(pod, [pod.node]).get(pod.node, {})
    return {resource: amount - owed.get(resource, 0) for resource, amount in yielded.items()}


def _held_for_others(pod: Pod, resources: Iterable[str], state: State) -> dict[str, int]:
    """Return the amounts on a pod's node that others hold, lend, or get back."""
    node, snapshot, ledger = pod.node, state.snapshot, state.ledger
    own = snapshot.lending.own_slots(node, {pod.uid: pod}).get(pod.uid, {})
    twice = total((own, *(loan.amounts for loan in ledger.loans(node))))  # Lent room comes back.
    held_on, found = ledger.held_on(node), {}
    for resource in resources:
        amounts = snapshot.amounts(node, resource)
        held = max(amounts.held, held_on.get(resource, 0))
        found[resource] = held + amounts.returning - twice.get(resource, 0)
    return found


def _holder(pod: Pod, resource: str, state: State) -> str:
    """Return the words for the oldest hold in the way."""
    for reservation in state.ledger.holding_on(pod.node):
        if reservation.resources.get(resource) and not reservation.yields_to(pod.priority):
            return f"held by {state.name_for(reservation.ref, pod)}"
    return "held"
