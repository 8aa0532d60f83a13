"""Preempt: decides on which nodes the eviction of kube-scheduler's victims helps.

kube-scheduler chooses the victims, and does not see holds: it would evict pods for room that stays
held. The answer leaves a node out unless the pod fits there next to all holds of others once the
victims are gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import total
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.reservation import Reservation
from reserver.scheduling.fit import (
    NO_SEAT,
    fits,
    fits_beside_holds,
    has_room,
    seats_by_node,
    with_yields,
)
from reserver.scheduling.recall import borrowed
from reserver.scheduling.request_arrays import ByNode
from reserver.scheduling.state import State

Victims = Mapping[str, Sequence[str]]
"""The UIDs of the pods to evict, by node."""

_AT_ONCE = 256
"""Most seats of an owner that are judged together."""


@dataclass(frozen=True, slots=True)
class PreemptVerdict:
    """The answer to a Preempt call.

    Attributes:
        nodes: the nodes on which the pod fits once the victims are gone.
        spared: the victims on nodes where holds would still keep the pod out, by node.
    """

    nodes: tuple[str, ...]
    spared: Mapping[str, tuple[str, ...]]


def judge_preemption(pod: Pod, victims: Victims, state: State, now: float) -> PreemptVerdict:
    """Return the nodes on which pods may be evicted for a pod.

    As long as an owner fits on one of its seats (or its reservation has policy Require), no pod is
    evicted for it elsewhere. For a bound pod that waits for a resize (`filter._for_bound`), pods
    are evicted only on its node; its present requests do not count twice.

    Args:
        victims: kube-scheduler's victims. A victim that Reserver does not see on its node frees
            nothing. A node without victims is left out, as kube-scheduler 1.37 treats it as an
            error (callExtenders in framework/preemption/preemption.go).
        now: unix seconds.
    """
    state.ledger.advance(now, most=None)
    seats = state.ledger.seats(pod)
    own = seats_by_node(pod, (seat for seat in seats if seat.node in victims), state.ledger)
    on_node: dict[str, list[Reservation]] = {}
    for seat in seats:
        on_node.setdefault(seat.node, []).append(seat)
    nodes = _candidates(pod, victims, on_node, state)
    rows = state.snapshot.rows(nodes)
    promised = state.nominations.promised(pod, nodes, own, state.ledger)
    gone = {node: (*victims[node], pod.uid) for node in nodes}
    taken = _less_victims(promised, gone, state.snapshot)
    here = {node: own[node] for node in nodes if node in own}
    shares = with_yields(here, pod, nodes, state.ledger)
    regained = state.ledger.regained(gone, pod)
    for node in nodes:  # Room that borrowers and owners leave is held again.
        lent = state.ledger.returned(node, on_node.get(node, ()), gone[node])
        if returned := total((lent, regained.get(node, {}))):
            shares[node] = shares.get(node, NO_SEAT)._replace(returned=returned)
    unknown = rows < 0  # An unknown node has no holds.
    helps = unknown | fits_beside_holds(pod, state.snapshot, shares, taken)[rows]
    spared = {node: tuple(victims[node]) for node in compress(nodes, ~helps)}
    return PreemptVerdict(tuple(compress(nodes, helps)), spared)


def _candidates(
    pod: Pod, victims: Victims, on_node: Mapping[str, Sequence[Reservation]], state: State
) -> list[str]:
    """Return the nodes on which pods may be evicted for a pod; `on_node` are its seats by node."""
    if pod.node:
        return [node for node, uids in victims.items() if uids and node == pod.node]
    # If borrowers have its seat, Reserver deletes only these.
    here = {node: seats for node, seats in on_node.items() if node in victims}
    elsewhere = {node: seats for node, seats in on_node.items() if node not in victims}
    recalled = frozenset(borrowed(pod, here, state))
    is_borrowed = recalled or any(borrowed(pod, elsewhere, state))
    if is_borrowed or _keeps_to_its_seats(pod, on_node, state):
        return [node for node, uids in victims.items() if uids and node in here.keys() - recalled]
    return [node for node, uids in victims.items() if uids]


def _keeps_to_its_seats(
    pod: Pod, on_node: Mapping[str, Sequence[Reservation]], state: State
) -> bool:
    if state.ledger.required(pod) is not None:
        return True
    if not on_node:
        return state.ledger.awaited_by(pod) is not None
    room = has_room(pod, state.snapshot, state.snapshot.rows(tuple(on_node)))
    every = tuple(compress(on_node, room))
    for start in range(0, len(every), _AT_ONCE):  # As a rule the first chunk has one.
        nodes = every[start : start + _AT_ONCE]
        own = seats_by_node(pod, (seat for n in nodes for seat in on_node[n]), state.ledger)
        usable = fits(pod, state.snapshot, with_yields(own, pod, nodes, state.ledger))
        if np.any(usable[state.snapshot.rows(nodes)]):
            return True
    return False


def _less_victims(taken: ByNode, victims: Victims, snapshot: Snapshot) -> ByNode:
    """Return the taken amounts of each node once the victims are gone."""
    left: dict[str, dict[str, int]] = {node: dict(amounts) for node, amounts in taken.items()}
    for node, uids in victims.items():
        for uid in set(uids):
            counted = snapshot.counted(uid)
            if counted is not None and counted.node == node:
                totals = left.setdefault(node, {})
                for resource, amount in counted.pod.requests.items():
                    totals[resource] = totals.get(resource, 0) - amount
    return left
