"""Bind: the final decision on whether a pod may use a node.

Bindings that were pending at the Filter call may have been decided since. So Bind decides again, on
the pods that are bound or being bound and the holds at this instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Reservation
from reserver.scheduling.fit import fits_beside_holds, in_the_way, seats_by_node, with_yields
from reserver.scheduling.gangs import NOBODY, Attempt
from reserver.scheduling.state import State

COMES_BACK = "capacity that comes back to reservations"


@dataclass(frozen=True, slots=True)
class BindVerdict:
    """The verdict on a Bind call.

    Attributes:
        refusal: why the pod may not use the node, in constant words; None if it may.
        claims: the identities of the reservations that the binding ends or claims a slot of.
        editions: their identities in versions before 0.2, if different: they are written next to
            the claims, for a rollback (docs/adr/0090).
    """

    refusal: str | None = None
    claims: tuple[str, ...] = ()
    editions: tuple[str, ...] = ()


def judge_bind(pod: Pod, node: str, state: State, now: float) -> BindVerdict:
    """Return whether a pod may be bound to a node at `now` (unix seconds), and its claims.

    A pod claims every reservation that names it, wherever it lands; of reservations that only match
    it, it claims one slot on its node. The other pods of its PodGroup count as in Filter until they
    are bound, so the order of their Bind calls does not matter.
    """
    state.ledger.advance(now, most=None)
    gang = state.gangs.attempt(pod, now) if pod.group else NOBODY
    if not state.ledger.may_concern(pod):
        return BindVerdict(_refusal(pod, node, state, (), gang))
    seats = state.ledger.seats(pod, spent=gang.spent)
    here = [seat for seat in seats if seat.node == node]
    if seats and not here and (required := state.ledger.required(pod, gang.spent)):
        return BindVerdict(f"must land on its seat in reservation {required.ref}")
    if not seats and (awaited := state.ledger.awaited_by(pod)):
        return BindVerdict(f"must wait for a place of reservation {awaited.ref}")
    if refusal := _refusal(pod, node, state, here, gang):
        return BindVerdict(refusal)
    ended = (each for each in state.ledger.naming(pod.name) if each.is_for(now))
    claimed = {each.identity: each for each in (*ended, *here)}
    if state.in_change and not claimed.keys().isdisjoint(state.in_change):
        return BindVerdict("must wait for a change of its reservation")
    editions = tuple(each.edition for each in claimed.values() if each.lasting)
    return BindVerdict(claims=tuple(claimed), editions=editions)


def _refusal(
    pod: Pod, node: str, state: State, seats: Sequence[Reservation], gang: Attempt
) -> str | None:
    """Return why a pod does not fit on a node next to the holds; None if it fits.

    Args:
        node: the node.
        seats: the pod's seats on the node.
    """
    row = state.snapshot.row(node)
    if row is None or not state.snapshot.guarded[row]:
        return None
    own = with_yields(seats_by_node(pod, seats, state.ledger), pod, (node,), state.ledger)
    if node in own and (owed := state.pending_resizes.owed(node)):
        left = {name: n - owed.get(name, 0) for name, n in own[node].yielded.items()}
        own[node] = own[node]._replace(yielded=left)
    if fits_beside_holds(pod, state.snapshot, own, gang.taken)[row]:
        return None
    (other,) = in_the_way(pod, (node,), state.ledger)
    if other is not None:
        return f"held by {state.name_for(other.ref, pod)}"
    return COMES_BACK if state.snapshot.exists[row] else "node not known yet"
