"""The effects that send a refused pod back: to its seat, or to another node.

kube-scheduler does not find the seats of a PodGroup. It gives up on a group at the first pod
without a node, and drops the nominations of earlier pods. Sent back one by one, the pods would not
meet. So the first refused pod is sent back with all others, later pods first: until all are
nominated, each attempt ends at the same pod, before another one loses its nomination
(docs/adr/0053-gangs-counted.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from zlib import crc32

import numpy as np

from reserver.cluster.categorical import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.view import LedgerView, Slot
from reserver.scheduling.fit import fits_beside_holds, fits_where, with_yields
from reserver.scheduling.gangs import Attempt
from reserver.scheduling.pending_pods import LEAST_SAMPLE
from reserver.scheduling.request_arrays import request_columns
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Effect, Nominate, Retry

MOST_TOGETHER = 500
"""Most pods that are considered with one pod; a larger group takes more attempts."""

MOST_ASKED = 10_000
"""Most owner rules that are evaluated for them, in 20 ms; more take more attempts."""


def nominations_for(
    pod: Pod, nodes: Iterable[str], gang: Attempt, state: State
) -> tuple[Nominate, ...]:
    """Return the effect that sends a pod to its seat, and other pods of its group to theirs.

    Of the others only pods whose slots cover them: the rest is judged at their own turn.

    Args:
        nodes: the nodes on which the pod can use its seat, in order.
        gang: the pods that were answered before it.
    """
    places = iter(nodes)
    node = next(places, "")
    if not pod.group or not node:
        return (Nominate(pod, node),) if node else ()
    slots, group = _Slots(gang.spent, state.ledger), state.gangs.waiting(pod)
    others = (
        other
        for uid, other in group.items()
        if uid != pod.uid and not gang.has(uid) and state.assumption(uid) is None
    )
    near = slots.affordable(islice(others, MOST_TOGETHER), MOST_ASKED // 2)
    rest = [each for each in near if not slots.take(each, each.nominated_node)]
    while node and not slots.take(pod, node, is_judged=True):
        node = next(places, "")  # Another pod was sent there.
    if not node:
        return ()
    own, first = node, []
    for other in slots.affordable(rest, MOST_ASKED):
        while node and not slots.take(other, node):
            node = next(places, "")
        if not node:
            break
        first.append((other, node))
    last = ((group[uid], node) for uid, node in gang.places() if uid in group)
    moved = tuple((each, node) for each, node in last if each.nominated_node != node)
    return (Nominate(pod, own, tuple(first), moved),)


class _Slots:
    """The slots that are left for a group."""

    def __init__(self, spent: Mapping[Slot, int], ledger: LedgerView) -> None:
        """Begin with the spent slots."""
        self._spent = Counter(spent)
        self._ledger = ledger
        self._asked = 0
        self._asked_on: dict[str, int] = {}

    def affordable(self, pods: Iterable[Pod], most: int) -> Iterator[Pod]:
        """Yield pods until `most` owner rules were evaluated."""
        return takewhile(lambda _: self._asked < most, pods)

    def take(self, pod: Pod, node: str, *, is_judged: bool = False) -> bool:
        """Take a pod's slots on a node; return whether slots that cover the pod were left.

        Slots need not cover a pod that was judged to fit on the node.
        """
        if not node:
            return False
        if node not in self._asked_on:
            self._asked_on[node] = self._ledger.asked_on(node)
        self._asked += self._asked_on[node]
        seats = self._ledger.seats(pod, (node,), self._spent)
        if not any(is_judged or seat.covers(pod.requests) for seat in seats):
            return False
        self._spent.update((seat.identity, node) for seat in seats)
        return True


SHOWN_S = 0.2
"""Seconds after which the watch will show events that kube-scheduler has seen already."""


def once_read(pod: Pod, names: Sequence[str], snapshot: Snapshot) -> tuple[Effect, ...]:
    """Return the effect that sends a pod back once Reserver has caught up with kube-scheduler.

    kube-scheduler names nodes on which it sees room. If Reserver sees none there, even without
    holds, it has yet to see a pod's deletion, and kube-scheduler would not retry by itself.
    """
    behind = np.zeros(len(snapshot.exists), dtype=np.bool_)
    for column, amount in zip(*request_columns(pod, snapshot), strict=True):
        offered, requested = snapshot.allocatable[:, column], snapshot.requested[:, column]
        behind |= (offered >= amount) & (offered - requested < amount)
    behind &= snapshot.exists & snapshot.guarded
    by_row = behind.tobytes() + b"\0"  # Looking up names takes longest.
    is_behind = behind.any() and any(map(by_row.__getitem__, snapshot.each_row(names)))
    return (Retry(pod, attempts=1, after_s=SHOWN_S),) if is_behind else ()


def elsewhere(
    pod: Pod, names: Sequence[str], state: State, unheld: Bools, gang: Attempt
) -> tuple[Effect, ...]:
    """Return the effect that sends a pod to a fitting node outside kube-scheduler's sample.

    Fewer names than the least sample are not a sample: kube-scheduler has refused all other nodes.
    A nomination by preemption is left alone; such a pod is retried.

    Args:
        pod: the pod, refused on all names.
        names: the names of the call.
        state: capacity and nominations.
        unheld: for each row, whether the pod fits next to the holds.
        gang: the pods of its group that were answered before it.
    """
    if len(names) < LEAST_SAMPLE:
        return ()
    snapshot = state.snapshot
    fitting = fits_where(pod, snapshot, unheld)
    if not fitting.any():
        return ()
    offered = snapshot.rows([*names, *gang.taken])
    fitting[offered[offered >= 0]] = False
    _leave_promised(fitting, pod, state, gang)
    rows = np.flatnonzero(fitting)
    if not len(rows):
        return ()
    if pod.nominated_node:
        return (Retry(pod, attempts=-(-snapshot.node_count // len(names))),)
    # Pods that are refused together are sent to different nodes.
    row = rows[crc32(pod.uid.encode()) % len(rows)]
    return (Nominate(pod, snapshot.name_of(row)),)


def _leave_promised(fitting: Bools, pod: Pod, state: State, gang: Attempt) -> None:
    """Remove nodes from the fitting rows whose room is promised to pods with precedence.

    kube-scheduler would refuse the pod there, and not retry by itself.
    """
    snapshot, row_of = state.snapshot, state.snapshot.row
    nominated = [
        n for n in state.nominations.nodes() if (row := row_of(n)) is not None and fitting[row]
    ]
    promised = state.nominations.promised(pod, nominated, (), state.ledger, gang.has)
    if not promised:
        return
    yields = with_yields({}, pod, promised, state.ledger)
    unheld = fits_beside_holds(pod, snapshot, yields, promised)
    asked = {name: amount for name, amount in pod.requests.items() if amount}
    for node, taken in promised.items():
        at = snapshot.rows([node])
        fitting[at] = unheld[at] & snapshot.leaves(node, asked, taken)
