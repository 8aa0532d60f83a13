"""Trials: pods are counted on nodes during a decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.state import State

Seat = Callable[[Pod, Part], None]
"""Counts a pod with the requests of all slots of a part."""


_NOBODY = Pod(name=PodName("", ""), uid="")


@contextmanager
def trial(snapshot: Snapshot, name: str) -> Iterator[Seat]:
    """Yield a function that counts pods as bound to nodes until the block ends.

    Other work sees them only if the block has an ``await``.

    Args:
        snapshot: the snapshot, which is restored when the block ends.
        name: a name that differs from those of enclosing trials.
    """
    seated: list[str] = []
    numbers = count()

    def seat(pod: Pod, part: Part) -> None:
        uid = f"{name}-{next(numbers)}"
        seated.append(uid)
        requests = {resource: amount * part.slots for resource, amount in pod.requests.items()}
        snapshot.count(replace(pod, uid=uid, requests=requests), part.node)

    try:
        yield seat
    finally:
        for uid in seated:
            snapshot.uncount(uid)


@contextmanager
def promised(reservation: Reservation, state: State) -> Iterator[None]:
    """Count the growth of a reservation's hold until the block ends.

    Other work sees it: the room was found, and is held only once a watch shows the write that is in
    flight.
    """
    holding = state.ledger.holding(reservation.ref)
    with trial(state.snapshot, f"promised-{id(holding)}") as seat:
        for part in reservation.parts:
            held = holding.get(part.node, {})
            more = {
                name: amount * part.slots - held.get(name, 0)
                for name, amount in reservation.resources.items()
            }
            requests = {name: amount for name, amount in more.items() if amount > 0}
            seat(replace(_NOBODY, requests=requests), part._replace(slots=1))
        yield
    for part in reservation.parts:
        state.listener.on_capacity_freed(part.node)


@contextmanager
def without(ref: Ref, state: State) -> Iterator[None]:
    """Count a reservation's held amounts as free until the block ends, like `trial`."""
    snapshot, ledger = state.snapshot, state.ledger
    holding = ledger.holding(ref)
    for node, amounts in holding.items():
        left = {name: n - amounts.get(name, 0) for name, n in ledger.held_on(node).items()}
        loans = ledger.loans(node, (ref,))
        snapshot.set_held(node, {name: n for name, n in left.items() if n}, loans)
    try:
        yield
    finally:
        for node in holding:
            snapshot.set_held(node, dict(ledger.held_on(node)), ledger.loans(node))
