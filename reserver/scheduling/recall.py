"""Recall: which borrowers have to go for an owner to land on its seat.

kube-scheduler's preemption would not do: it looks at a sample of the nodes, which may leave out the
seat's, and only at pods of a lower priority than the owner's. So Reserver deletes the borrowers, as
kube-scheduler deletes its victims: the pods' grace periods count, and no budget does
(docs/adr/0083-lending.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.effects import Recall
from reserver.scheduling.fit import fits_beside_holds, seats_by_node, total, with_yields
from reserver.scheduling.state import State

RECALL_S = 60.0
"""How long a node lends nothing after an owner has waited there, in seconds."""

_MOST_SPARED = 16


def recall(pod: Pod, seats: Sequence[Reservation], state: State) -> Recall | None:
    """Return how an owner gets its seats on one node that borrowers take.

    Nobody has to go, or it does not help, where it returns None. A recall without borrowers waits
    for pods that are on their way out.
    """
    node = seats[0].node
    borrowers = sorted(state.snapshot.lending.borrowers(node), key=_in_order)
    if not borrowers or not _fits(pod, seats, borrowers, state) or _fits(pod, seats, (), state):
        return None
    # The more are gone, the more fits.
    enough = range(1, len(borrowers))
    going = borrowers[
        : bisect_left(enough, 1, key=lambda n: _fits(pod, seats, borrowers[:n], state)) + 1
    ]
    for each in going[-2 : -2 - _MOST_SPARED : -1]:  # The most important that may not matter.
        others = [other for other in going if other is not each]
        if not each.terminating and _fits(pod, seats, others, state):
            going = others
    return Recall(pod, node, tuple(each for each in going if not each.terminating))


def _in_order(pod: Pod) -> tuple[bool, int, Sequence[int]]:
    """Return the sort key of borrowers: those who are going, the least important, the youngest."""
    return (not pod.terminating, pod.priority, [-ord(letter) for letter in pod.created])


def _fits(pod: Pod, seats: Sequence[Reservation], gone: Sequence[Pod], state: State) -> bool:
    """Return whether an owner fits on the node of its seats once some borrowers are gone."""
    snapshot, node = state.snapshot, seats[0].node
    freed = total(each.requests for each in gone)
    for name, amount in pod.requests.items():
        offered, requested, _ = snapshot.amounts(node, name)
        if amount and offered - requested + freed.get(name, 0) < amount:
            return False
    own = with_yields(seats_by_node(pod, seats, state.ledger), pod, (node,), state.ledger)
    seat = own[node]
    returned = state.ledger.returned(node, seats, [each.uid for each in gone])
    own[node] = seat._replace(returned=returned)
    taken = {node: {name: -amount for name, amount in freed.items()}}
    row = snapshot.row(node)
    return row is not None and bool(fits_beside_holds(pod, snapshot, own, taken)[row])
