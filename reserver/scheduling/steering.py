"""Steers the pods of a PodGroup to seats that kube-scheduler does not find.

It gives up on a group at the first pod that it finds no node for, and forgets the nominations of
those before it. Sent back one by one they would not meet. So the first that is refused is sent
back with all others, those that it is asked for later first: until they all are nominated, each
attempt ends with the same pod, before another one loses its nomination
(docs/adr/0053-gangs-counted.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice

from reserver.cluster.pod import Pod
from reserver.reservations.view import Slot
from reserver.scheduling.effects import Steer
from reserver.scheduling.gangs import Attempt
from reserver.scheduling.state import State

MOST_TOGETHER = 500
"""How many pods are looked at to be sent back with one; a larger group takes more attempts."""


def steered(pod: Pod, nodes: Iterable[str], gang: Attempt, state: State) -> tuple[Steer, ...]:
    """Return what sends a pod to its seat, and the others of its group to theirs.

    Only others whose slots cover them are: what else they fit in is judged when it is their turn.

    Args:
        pod: the pod.
        nodes: where it can have its seat, in its order.
        gang: those that were answered before it.
        state: the cluster.
    """
    places = iter(nodes)
    node = next(places, "")
    if not pod.group or not node:
        return (Steer(pod, node),) if node else ()
    spent, group = Counter(gang.spent), state.gangs.waiting(pod)
    others = (
        other
        for uid, other in group.items()
        if uid != pod.uid and not gang.has(uid) and state.assumption(uid) is None
    )
    near = islice(others, MOST_TOGETHER)
    rest = [each for each in near if not _spend(each, each.nominated_node, spent, state)]
    while node and not _spend(pod, node, spent, state, is_judged=True):
        node = next(places, "")  # Another one has been sent there.
    if not node:
        return ()
    own, first = node, []
    for other in rest:
        while node and not _spend(other, node, spent, state):
            node = next(places, "")
        if not node:
            break
        first.append((other, node))
    last = ((group[uid], node) for uid, node in gang.places() if uid in group)
    moved = tuple((each, node) for each, node in last if each.nominated_node != node)
    return (Steer(pod, own, tuple(first), moved),)


def _spend(
    pod: Pod, node: str, spent: Counter[Slot], state: State, *, is_judged: bool = False
) -> bool:
    """Take a pod's slots on a node; return whether it has any left there that cover it.

    Of one that is judged to fit on the node, slots need not cover it.
    """
    seats = state.ledger.seats(pod, (node,), spent) if node else ()
    if not any(is_judged or seat.covers(pod.requests) for seat in seats):
        return False
    spent.update((seat.identity, node) for seat in seats)
    return True
