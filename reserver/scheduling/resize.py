"""Whether a running pod may grow on its node: not into room that is held for others."""

from __future__ import annotations

from collections.abc import Mapping

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import show
from reserver.scheduling.fit import is_exempt
from reserver.scheduling.naming import words_for
from reserver.scheduling.state import State


def judge_resize(pod: Pod, state: State, now: float) -> str | None:
    """Return why a pod may not become what it is to be; None if it may.

    Only what is held counts: growth for which the node has no room anyway is the kubelet's to
    defer. But where anything is held, deferred growth would take that room once other pods have
    left. Slots that the pod might have claimed when it was bound are for other pods.

    Args:
        pod: the pod with the requests that it is to have.
        state: the cluster, with the pod as it is.
        now: unix seconds.
    """
    state.ledger.advance(now)
    node, snapshot = pod.node, state.snapshot
    if not node or not state.ledger.held_on(node) or is_exempt(pod, snapshot):
        return None
    yielded = state.ledger.yielding(pod, [node]).get(node, {})
    for resource, more in growth(pod, state).items():
        amounts = snapshot.amounts(node, resource)
        held = amounts.held - yielded.get(resource, 0)
        free = amounts.allocatable - amounts.requested - held
        if held > 0 and more > free:
            return (
                f"{_whose(pod, resource, state)}: node {node} has {show(resource, max(0, free))} "
                f"of {resource} beside the {show(resource, held)} that are held, and pod "
                f"{pod.name} needs {show(resource, more)} more; ask for less, or wait until the "
                "hold ends"
            )
    return None


def growth(pod: Pod, state: State) -> Mapping[str, int]:
    """Return what a pod needs beyond what it is counted with on its node."""
    counted = state.snapshot.counted(pod.uid)
    is_there = counted is not None and counted.node == pod.node
    before = counted.pod.requests if counted and is_there else {}
    return {
        resource: amount - before.get(resource, 0)
        for resource, amount in pod.requests.items()
        if amount > before.get(resource, 0)
    }


def _whose(pod: Pod, resource: str, state: State) -> str:
    """Return the words for the oldest hold that is in the way."""
    for reservation in state.ledger.holding_on(pod.node):
        if reservation.resources.get(resource) and not reservation.yields_to(pod.priority):
            return f"held by {words_for(reservation.ref, pod, state)}"
    return "held"
